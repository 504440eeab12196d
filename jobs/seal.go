package jobs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
)

// Sealer encrypts what is kept of requests and answers: AES-256-GCM, with what
// it belongs to as associated data, so that nothing can be moved to another
// job.
type Sealer struct {
	key  []byte
	rows cipher.AEAD
}

// errSeal says no more than that: what could not be opened is not described.
var errSeal = errors.New("cannot be opened: another key, or it was changed")

// NewSealer makes a sealer of a secret of 16 bytes or more.
func NewSealer(secret []byte) (*Sealer, error) {
	if len(secret) < 16 {
		return nil, errors.New("the key must have 16 bytes or more")
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "geoproxy jobs: seal", 32)
	if err != nil {
		return nil, err
	}
	rows, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return &Sealer{key: key, rows: rows}, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal encrypts a row's value; it belongs to what owner names.
func (s *Sealer) Seal(owner string, plain []byte) []byte {
	nonce := make([]byte, s.rows.NonceSize(), s.rows.NonceSize()+len(plain)+s.rows.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return s.rows.Seal(nonce, nonce, plain, []byte(owner))
}

// Open decrypts what Seal gave for the same owner.
func (s *Sealer) Open(owner string, sealed []byte) ([]byte, error) {
	n := s.rows.NonceSize()
	if len(sealed) < n {
		return nil, errSeal
	}
	plain, err := s.rows.Open(nil, sealed[:n], sealed[n:], []byte(owner))
	if err != nil {
		return nil, errSeal
	}
	return plain, nil
}

// A sealed blob is a random salt, from which and from the key its own key is
// made, and then pieces of sealPiece bytes, each sealed under its number and
// whether it is the last (the STREAM construction of Hoang, Reyhanitabar,
// Rogaway and Vizár, 2015). Pieces can be read in any order; one that was cut
// off, moved or left out is noticed.
const (
	sealSalt  = 32
	sealPiece = 64 << 10
	sealTag   = 16
)

func (s *Sealer) blobAEAD(name string, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s.key, salt, "geoproxy jobs: blob "+name, 32)
	if err != nil {
		return nil, err
	}
	return newAEAD(key)
}

func pieceNonce(n int64, last bool) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint64(nonce[3:], uint64(n)) //nolint:gosec // counts up from 0
	if last {
		nonce[11] = 1
	}
	return nonce
}

// Writer seals what is written to it into w, under a blob's name. Close writes
// the last piece and does not close w.
func (s *Sealer) Writer(w io.Writer, name string) (io.WriteCloser, error) {
	salt := make([]byte, sealSalt)
	_, _ = rand.Read(salt) // never fails
	aead, err := s.blobAEAD(name, salt)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(salt); err != nil {
		return nil, err
	}
	return &sealWriter{w: w, aead: aead, piece: make([]byte, 0, sealPiece+sealTag)}, nil
}

type sealWriter struct {
	w     io.Writer
	aead  cipher.AEAD
	piece []byte
	n     int64
	err   error
}

func (s *sealWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && s.err == nil {
		if len(s.piece) == sealPiece {
			s.flush(false)
			continue
		}
		n := min(len(p), sealPiece-len(s.piece))
		s.piece = append(s.piece, p[:n]...)
		p, written = p[n:], written+n
	}
	return written, s.err
}

func (s *sealWriter) Close() error {
	if s.err == nil {
		s.flush(true)
	}
	return s.err
}

func (s *sealWriter) flush(last bool) {
	sealed := s.aead.Seal(s.piece[:0], pieceNonce(s.n, last), s.piece, nil)
	_, s.err = s.w.Write(sealed)
	s.piece = s.piece[:0]
	s.n++
}

// SealedSize is how long a blob of so many bytes is when sealed.
func SealedSize(plain int64) int64 {
	pieces := max(1, (plain+sealPiece-1)/sealPiece)
	return sealSalt + plain + pieces*sealTag
}

// plainSize is the reverse of SealedSize; negative where nothing has this size.
func plainSize(sealed int64) int64 {
	body := sealed - sealSalt
	if body < sealTag {
		return -1
	}
	pieces := (body + sealPiece + sealTag - 1) / (sealPiece + sealTag)
	return body - pieces*sealTag
}

// Reader reads a sealed blob, of whatever part is asked for. The caller closes
// the blob.
func (s *Sealer) Reader(blob Blob, name string) (*io.SectionReader, error) {
	size := plainSize(blob.Size())
	if size < 0 {
		return nil, errSeal
	}
	salt := make([]byte, sealSalt)
	if _, err := blob.ReadAt(salt, 0); err != nil {
		return nil, err
	}
	aead, err := s.blobAEAD(name, salt)
	if err != nil {
		return nil, err
	}
	r := &sealReader{blob: blob, aead: aead, size: size, at: -1}
	return io.NewSectionReader(r, 0, size), nil
}

type sealReader struct {
	blob  Blob
	aead  cipher.AEAD
	size  int64
	at    int64 // the number of the piece in plain
	plain []byte
}

// ReadAt is for one reader at a time: it keeps the piece that was read last.
func (r *sealReader) ReadAt(p []byte, off int64) (int, error) {
	read := 0
	for len(p) > 0 {
		if off >= r.size {
			return read, io.EOF
		}
		if err := r.load(off / sealPiece); err != nil {
			return read, err
		}
		n := copy(p, r.plain[off%sealPiece:])
		p, off, read = p[n:], off+int64(n), read+n
	}
	return read, nil
}

func (r *sealReader) load(n int64) error {
	if n == r.at {
		return nil
	}
	last := (n+1)*sealPiece >= r.size
	length := int64(sealPiece)
	if last {
		length = r.size - n*sealPiece
	}
	buf := make([]byte, length+sealTag)
	if _, err := r.blob.ReadAt(buf, sealSalt+n*(sealPiece+sealTag)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	plain, err := r.aead.Open(buf[:0], pieceNonce(n, last), buf, nil)
	if err != nil {
		return errSeal
	}
	r.at, r.plain = n, plain
	return nil
}
