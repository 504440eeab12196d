package classify_test

import "testing"

func FuzzTitiler(f *testing.F) { fuzzFamily(f, "titiler") }
