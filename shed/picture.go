package shed

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"strings"

	"golang.org/x/image/font/basicfont"

	"github.com/geoproxy/geoproxy/classify"
)

// Pictures are what WMS answers with where EXCEPTIONS is INIMAGE (the message
// is written on one) or BLANK. The caller chooses their size, so they have to
// be cheap: one bit a pixel, of which memory is taken only for what is written
// on, and at most maxSide pixels a side. A larger one that was asked for is
// answered with one of that side.
//
// The coders of JPEG and GIF take time for every pixel. Above maxCoded of them
// the picture is a PNG whatever was asked for: browsers and GIS go by the bytes.
const (
	maxSide  = 2048
	maxCoded = 256 * 256
)

// picture answers with a picture of the size that was asked for.
func (r *Refusal) picture() Body {
	s := newSheet(r.Dialect.Width, r.Dialect.Height)
	if r.Dialect.Exceptions == classify.ExceptionsInImage {
		var scratch [maxMessage]byte
		s.write(r.appendMessage(scratch[:0]))
	}
	return s.encode(r.Format, r.Dialect.Transparent)
}

// sheet is a picture of one bit a pixel. Rows holds its first ones, padded to
// bytes; all below is background.
type sheet struct {
	width, height int
	stride        int // bytes a row
	rows          []byte
}

func newSheet(width, height int) *sheet {
	width, height = min(max(width, 1), maxSide), min(max(height, 1), maxSide)
	return &sheet{width: width, height: height, stride: (width + 7) / 8}
}

// The font: 95 printable characters of ASCII, and one for all the others.
const (
	glyphWidth   = 6
	glyphAdvance = 7
	glyphHeight  = 13
	glyphOther   = 95
	margin       = 4 // pixels around the text
)

// glyphs are the rows of each character, their pixels from the highest bit on.
var glyphs = func() (rows [glyphOther + 1][glyphHeight]byte) {
	mask, ok := basicfont.Face7x13.Mask.(*image.Alpha)
	if !ok {
		return rows
	}
	for i := range rows {
		for y := range glyphHeight {
			for x := range glyphWidth {
				if mask.AlphaAt(x, i*glyphHeight+y).A > 0x7f {
					rows[i][y] |= 0x80 >> x
				}
			}
		}
	}
	return rows
}()

// write writes text from the top, in as many lines as there is room for.
func (s *sheet) write(text []byte) {
	columns := (s.width - 2*margin + glyphAdvance - glyphWidth) / glyphAdvance
	chars := bytes.Runes(text)
	for y := margin; columns > 0 && len(chars) > 0 && y+glyphHeight+margin <= s.height; y += glyphHeight {
		var line []rune
		line, chars = cutLine(chars, columns)
		s.rows = append(s.rows, make([]byte, (y+glyphHeight)*s.stride-len(s.rows))...)
		for i, char := range line {
			s.draw(margin+i*glyphAdvance, y, char)
		}
	}
}

// cutLine cuts a line of at most so many columns off text, at a space where
// there is one.
func cutLine(text []rune, columns int) (line, rest []rune) {
	if len(text) <= columns {
		return text, nil
	}
	for at := columns; at > 0; at-- {
		if text[at] == ' ' {
			return text[:at], text[at+1:]
		}
	}
	return text[:columns], text[columns:]
}

// draw draws one character with its upper left corner at x, y. All of it is on
// the sheet.
func (s *sheet) draw(x, y int, char rune) {
	i := glyphOther
	if char >= ' ' && char <= '~' {
		i = int(char - ' ')
	}
	for dy, bits := range glyphs[i] {
		at := (y+dy)*s.stride + x/8
		s.rows[at] |= bits >> (x % 8)
		if low := bits << (8 - x%8); low != 0 {
			s.rows[at+1] |= low
		}
	}
}

// marks calls mark for every pixel that is written on, with its index.
func (s *sheet) marks(mark func(i int)) {
	for at, bits := range s.rows {
		y, x := at/s.stride, at%s.stride*8
		for ; bits != 0; bits <<= 1 {
			if bits&0x80 != 0 {
				mark(y*s.width + x)
			}
			x++
		}
	}
}

// encode gives the picture in the format that was asked for, black on white or
// on nothing. JPEG has no nothing.
func (s *sheet) encode(format string, transparent bool) Body {
	var paper color.Color = color.White
	if transparent {
		paper = color.Transparent
	}
	bounds := image.Rect(0, 0, s.width, s.height)
	small := s.width*s.height <= maxCoded
	var b bytes.Buffer // writing to one does not fail
	switch format = strings.ToLower(format); {
	case small && strings.HasPrefix(format, "image/jpeg"), small && strings.HasPrefix(format, "image/jpg"):
		m := image.NewGray(bounds)
		for i := range m.Pix {
			m.Pix[i] = 0xff
		}
		s.marks(func(i int) { m.Pix[i] = 0 })
		if jpeg.Encode(&b, m, nil) == nil {
			return Body{ContentType: "image/jpeg", Bytes: b.Bytes()}
		}
	case small && strings.HasPrefix(format, "image/gif"):
		m := image.NewPaletted(bounds, color.Palette{paper, color.Black})
		s.marks(func(i int) { m.Pix[i] = 1 })
		if gif.Encode(&b, m, nil) == nil {
			return Body{ContentType: "image/gif", Bytes: b.Bytes()}
		}
	}
	return Body{ContentType: "image/png", Bytes: s.appendPNG(nil, transparent)}
}
