package classify_test

import "testing"

func FuzzTitiler(f *testing.F) { fuzzFamily(f, "titiler") }

func FuzzOSRM(f *testing.F) { fuzzFamily(f, "osrm") }

func FuzzValhalla(f *testing.F) { fuzzFamily(f, "valhalla") }

func FuzzORS(f *testing.F) { fuzzFamily(f, "ors") }

func FuzzGraphHopper(f *testing.F) { fuzzFamily(f, "graphhopper") }
