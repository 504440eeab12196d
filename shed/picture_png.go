package shed

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
)

// deflaters are kept, for each has hundreds of kilobytes of tables.
var deflaters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil { // never: the level is a constant
		return zlib.NewWriter(io.Discard)
	}
	return w
}}

// appendPNG writes the sheet as a PNG of one bit a pixel and two colours (PNG,
// third edition, clauses 5 and 11). The standard library's coder takes a byte
// a pixel of memory and a hundred times as long.
func (s *sheet) appendPNG(b []byte, transparent bool) []byte {
	b = append(b, "\x89PNG\r\n\x1a\n"...)

	var header [13]byte
	binary.BigEndian.PutUint32(header[0:], uint32(s.width))  //nolint:gosec // at most maxSide
	binary.BigEndian.PutUint32(header[4:], uint32(s.height)) //nolint:gosec // at most maxSide
	header[8], header[9] = 1, 3                              // one bit a pixel, an index into the palette
	b = appendChunk(b, "IHDR", header[:])
	b = appendChunk(b, "PLTE", []byte{0xff, 0xff, 0xff, 0, 0, 0})
	if transparent {
		b = appendChunk(b, "tRNS", []byte{0})
	}

	// Each row begins with the byte of its filter, which is none.
	var data bytes.Buffer // writing to one does not fail
	z := deflaters.Get().(*zlib.Writer)
	z.Reset(&data)
	row, blank := make([]byte, 1+s.stride), make([]byte, 1+s.stride)
	for y := range s.height {
		if from := y * s.stride; from < len(s.rows) {
			copy(row[1:], s.rows[from:from+s.stride])
			_, _ = z.Write(row)
			continue
		}
		_, _ = z.Write(blank)
	}
	_ = z.Close()
	deflaters.Put(z)
	b = appendChunk(b, "IDAT", data.Bytes())
	return appendChunk(b, "IEND", nil)
}

// appendChunk writes a chunk: its length, type, data, and a sum over the last two.
func appendChunk(b []byte, kind string, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(data))) //nolint:gosec // far below 4 GiB
	from := len(b)
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
}
