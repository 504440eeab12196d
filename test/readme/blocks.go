// Package readme runs what README.md says, so that it cannot say what is not so.
package readme

import (
	"fmt"
	"strings"
)

// Block is a fenced block of a Markdown page.
type Block struct {
	Line     int    // of its fence, from 1
	Language string // "sh", "yaml", "text"
	Note     string // of the HTML comment on the line before it; empty where there is none
	Text     string // without the fences, ending in a newline
}

// Blocks finds the fenced blocks of a page, in their order. A fence that is not
// closed is an error.
func Blocks(page string) ([]Block, error) {
	var blocks []Block
	var open *Block
	note, number := "", 0
	for line := range strings.Lines(page) {
		number++
		text := strings.TrimSuffix(line, "\n")
		fence, isFence := strings.CutPrefix(text, "```")
		comment, isComment := strings.CutPrefix(text, "<!-- ")
		switch {
		case open != nil && isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line
		case isFence:
			open = &Block{Line: number, Language: fence, Note: note}
			note = ""
		case isComment:
			note = strings.TrimSuffix(comment, " -->")
		default:
			note = ""
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block at line %d is not closed", open.Line)
	}
	return blocks, nil
}
