package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geoproxy/geoproxy/config"
)

// secretBytes is how long a secret made here is.
const secretBytes = 32

// secretOf gives the secret of the config, or the one kept in data_dir, which
// is made when first asked for: tenants keep their names over restarts.
func secretOf(file *config.File) ([]byte, error) {
	return keptSecret(file.DataDir, "secret", file.Secret)
}

// keptSecret gives what was written, or what is kept in a file of dir, which is
// made when first asked for.
func keptSecret(dir, name, written string) ([]byte, error) {
	if written != "" {
		return []byte(written), nil
	}
	path := filepath.Join(dir, name)
	secret, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
	switch {
	case err == nil && len(secret) >= secretBytes:
		return secret, nil
	case err == nil:
		return nil, fmt.Errorf("%s holds %d bytes, not a secret of %d: remove it to have one made", path, len(secret), secretBytes)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	secret = make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	// Made whole under another name first, so that a crash leaves no half of one.
	temp, err := os.CreateTemp(dir, name+"-*")
	if err != nil {
		return nil, err
	}
	_, werr := temp.Write(secret)
	if err := errors.Join(werr, temp.Chmod(0o600), temp.Close(), os.Rename(temp.Name(), path)); err != nil {
		return nil, fmt.Errorf("keeping a secret: %w", err)
	}
	return secret, nil
}
