package readme_test

import (
	"slices"
	"testing"

	"github.com/geoproxy/geoproxy/test/readme"
)

func TestBlocks(t *testing.T) {
	page := "# Page\n\n<!-- a note -->\n```sh\necho 1\necho 2\n```\n\n<!-- of nothing -->\n\n```text\n1\n```\n"
	want := []readme.Block{
		{Line: 4, Language: "sh", Note: "a note", Text: "echo 1\necho 2\n"},
		{Line: 11, Language: "text", Text: "1\n"},
	}
	got, err := readme.Blocks(page)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := readme.Blocks("```sh\necho\n"); err == nil {
		t.Error("a block that is not closed was taken")
	}
}
