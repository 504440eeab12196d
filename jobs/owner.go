package jobs

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// Marks makes what must not be forged, with a key of its own made of the
// process's secret: owners, idempotency keys and cursors.
type Marks struct{ key []byte }

// NewMarks makes marks under a secret of 16 bytes or more.
func NewMarks(secret []byte) (*Marks, error) {
	if len(secret) < 16 {
		return nil, errors.New("the secret must have 16 bytes or more")
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "geoproxy jobs: marks", sha256.Size)
	if err != nil {
		return nil, err
	}
	return &Marks{key: key}, nil
}

// Of is what stands in the store for parts that must not be read there. The
// kind keeps marks of different use apart.
func (m *Marks) Of(kind string, parts ...string) string {
	mac := hmac.New(sha256.New, m.key)
	for _, p := range append([]string{kind}, parts...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		mac.Write(n[:])
		mac.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

// Cursor is where a list goes on: after the job that was created then.
type Cursor struct {
	Created time.Time
	ID      ID
}

// Cursor writes a cursor that only its owner's list takes back.
func (m *Marks) Cursor(owner string, c Cursor) string {
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(c.Created.UnixMilli()))
	text := base64.RawURLEncoding.EncodeToString(at[:]) + "." + string(c.ID)
	return text + "." + m.Of("cursor", owner, text)
}

// ParseCursor reads a cursor of the owner's own list.
func (m *Marks) ParseCursor(owner, s string) (Cursor, bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 || !hmac.Equal([]byte(s[i+1:]), []byte(m.Of("cursor", owner, s[:i]))) {
		return Cursor{}, false
	}
	at, id, _ := strings.Cut(s[:i], ".")
	raw, err := base64.RawURLEncoding.DecodeString(at)
	if err != nil || len(raw) != 8 {
		return Cursor{}, false
	}
	created := time.UnixMilli(int64(binary.BigEndian.Uint64(raw))) //nolint:gosec // written by Cursor
	return Cursor{Created: created, ID: ID(id)}, true
}
