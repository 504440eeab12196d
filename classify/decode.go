package classify

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxDecoded is the most that a coded body is decoded to.
	maxDecoded = 1 << 20
	// maxRatio is the most that a coded body is taken to grow by. Deflate can
	// reach 1030, text does not come near it.
	maxRatio = 200
	// maxCodings is how many content codings may be stacked.
	maxCodings = 4
	// maxWindow is the window that RFC 9659 allows for zstd.
	maxWindow = 8 << 20
)

// room is the memory that decoding takes: two buffers, of which each coding
// reads one and writes the other.
type room struct{ out, in []byte }

var rooms = sync.Pool{New: func() any { return new(room) }}

func borrow() *room    { return rooms.Get().(*room) }
func giveBack(r *room) { rooms.Put(r) }

// decode undoes content codings, which the header lists in the order in which
// they were applied (RFC 9110 8.4). It gives what could be decoded, in r's
// memory or b's own, and the share of b that it was decoded from: a coding that
// works in blocks loses one that ends early. It is open where b ends early,
// malformed where a coding is unknown, its data is damaged, or the limits do not
// hold it.
func (r *room) decode(b []byte, contentEncoding string) (text []byte, share float64, how reading) {
	limit := min(maxDecoded, maxRatio*len(b))
	share = 1
	for n := 0; contentEncoding != ""; {
		var coding string
		contentEncoding, coding = cutLast(contentEncoding)
		if coding == "" || strings.EqualFold(coding, "identity") {
			continue
		}
		if n++; n > maxCodings {
			return nil, 0, malformed
		}
		var used int
		var stage reading
		r.in, r.out = r.out, r.in
		r.out, used, stage = appendDecoded(r.out[:0], b, strings.ToLower(coding), limit)
		if stage == malformed || used == 0 {
			return nil, 0, malformed
		}
		share *= float64(used) / float64(len(b))
		how = max(how, stage)
		b = r.out
	}
	return b, share, how
}

// cutLast cuts the last element off a list with commas.
func cutLast(list string) (rest, last string) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", strings.TrimSpace(list)
	}
	return list[:i], strings.TrimSpace(list[i+1:])
}

// appendDecoded undoes one coding of b, up to limit bytes. Used is how many bytes
// of b it took to decode what it appends.
func appendDecoded(dst, b []byte, coding string, limit int) (text []byte, used int, how reading) {
	switch coding {
	case "gzip", "x-gzip":
		return gzips.append(dst, b, limit)
	case "deflate":
		// RFC 9110 8.4.1.2 means zlib by it; some clients leave that away.
		if len(b) >= 2 && b[0]&0x0f == 8 && (int(b[0])<<8|int(b[1]))%31 == 0 {
			return zlibs.append(dst, b, limit)
		}
		return flates.append(dst, b, limit)
	case "br":
		return brotlis.append(dst, b, limit)
	case "zstd":
		return zstds.append(dst, b, limit)
	}
	return dst, 0, malformed
}

// decoders keeps the decoders of one coding. Each has windows and tables of
// tens of kilobytes and more, which no request should allocate.
type decoders struct{ pool sync.Pool }

// decoder is one of them, with what it reads.
type decoder struct {
	io.Reader
	reset func(io.Reader) error // begins a new text, whose header it may read
	src   bytes.Reader
}

func newDecoders(r func() (io.Reader, func(io.Reader) error)) *decoders {
	return &decoders{sync.Pool{New: func() any {
		d := new(decoder)
		d.Reader, d.reset = r()
		return d
	}}}
}

var (
	gzips = newDecoders(func() (io.Reader, func(io.Reader) error) {
		r := new(gzip.Reader)
		return r, r.Reset
	})
	zlibs = newDecoders(func() (io.Reader, func(io.Reader) error) {
		z := new(lateZlib)
		return z, z.reset
	})
	flates = newDecoders(func() (io.Reader, func(io.Reader) error) {
		r := flate.NewReader(nil)
		return r, func(src io.Reader) error { return r.(flate.Resetter).Reset(src, nil) }
	})
	brotlis = newDecoders(func() (io.Reader, func(io.Reader) error) {
		r := brotli.NewReader(nil)
		return r, r.Reset
	})
	zstds = newDecoders(func() (io.Reader, func(io.Reader) error) {
		// One at a time, so that it starts no goroutine; the options are constants
		// that NewReader takes.
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
		if err != nil {
			return bytes.NewReader(nil), func(io.Reader) error { return err }
		}
		return r, r.Reset
	})
)

// lateZlib is a zlib reader that is made with the first text: zlib has none without.
type lateZlib struct{ io.ReadCloser }

func (z *lateZlib) reset(src io.Reader) (err error) {
	if z.ReadCloser != nil {
		return z.ReadCloser.(zlib.Resetter).Reset(src, nil)
	}
	z.ReadCloser, err = zlib.NewReader(src)
	return err
}

// append decodes src and appends it to dst, up to limit bytes; what is longer is
// malformed.
func (p *decoders) append(dst, src []byte, limit int) (text []byte, used int, how reading) {
	d := p.pool.Get().(*decoder)
	d.src.Reset(src)
	dst, used, err := d.read(dst, limit)
	d.src.Reset(nil)
	p.pool.Put(d)
	switch {
	case err == nil:
		return dst, len(src), complete
	case errors.Is(err, io.ErrUnexpectedEOF):
		return dst, used, open
	}
	return dst, used, malformed
}

var errTooLong = errors.New("decodes to more than is allowed")

func (d *decoder) read(dst []byte, limit int) (text []byte, used int, err error) {
	length := d.src.Len()
	if err := d.reset(&d.src); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return dst, 0, err
	}
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, 16<<10)
		}
		n, err := d.Read(dst[len(dst):cap(dst)])
		if n > 0 {
			dst = dst[:len(dst)+n]
			used = length - d.src.Len()
		}
		if len(dst) > limit {
			return dst, used, errTooLong
		}
		if errors.Is(err, io.EOF) {
			return dst, used, nil
		}
		if err != nil {
			return dst, used, err
		}
	}
}
