package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
)

// How a JWKS is kept fresh.
const (
	jwksEvery   = 15 * time.Minute // while it can be fetched
	jwksAtMost  = 10 * time.Second // between fetches, whoever asks: tokens may name keys that never were
	jwksTimeout = 10 * time.Second
	jwksLimit   = 1 << 20 // bytes
)

// jwks fetches an issuer's key set in the background. A set that cannot be
// fetched leaves the last one in place.
type jwks struct {
	url    string
	client *http.Client
	log    *slog.Logger
	pause  time.Duration // jwksAtMost

	keys  atomic.Pointer[verification]
	asked chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
}

// verification is one key set. What it said of a token holds as long as it is
// the current one.
type verification struct {
	keys keyfunc.Keyfunc
	text []byte // as fetched
}

func newJWKS(url string, log *slog.Logger) *jwks { return newJWKSPaused(url, log, jwksAtMost) }

func newJWKSPaused(url string, log *slog.Logger, pause time.Duration) *jwks {
	ctx, stop := context.WithCancel(context.Background())
	j := &jwks{
		url: url, log: log, pause: pause,
		client: &http.Client{Timeout: jwksTimeout, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: jwksTimeout, DisableKeepAlives: true,
		}},
		asked: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	go j.run(ctx)
	return j
}

// current is the key set as last fetched; nil where there is none yet.
func (j *jwks) current() *verification {
	if j == nil {
		return nil
	}
	return j.keys.Load()
}

// refresh asks for the set to be fetched soon. It does not wait.
func (j *jwks) refresh() {
	if j == nil {
		return
	}
	select {
	case j.asked <- struct{}{}:
	default: // somebody has asked already
	}
}

func (j *jwks) close() {
	j.stop()
	<-j.done
}

func (j *jwks) run(ctx context.Context) {
	defer close(j.done)
	retry := time.Second
	failing := false
	for {
		err := j.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := jwksEvery
		if err != nil {
			wait = retry
			retry = min(2*retry, time.Minute)
			if !failing {
				j.log.WarnContext(ctx, "the JWKS cannot be fetched: tokens of keys not yet known are claimed", "error", redactError(err))
			}
		} else {
			retry = time.Second
			if failing {
				j.log.InfoContext(ctx, "the JWKS can be fetched again")
			}
		}
		failing = err != nil
		if !j.sleep(ctx, wait) {
			return
		}
	}
}

// sleep waits for the next fetch: the whole wait, or until somebody asks, but
// then at least the pause. It reports false when ctx ends.
func (j *jwks) sleep(ctx context.Context, wait time.Duration) bool {
	pause := time.NewTimer(min(j.pause, wait))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
	}
	rest := time.NewTimer(wait - min(j.pause, wait))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-rest.C:
	case <-j.asked:
	}
	return true
}

// fetch fetches the set and, where it differs, puts it in the place of the last.
func (j *jwks) fetch(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url, http.NoBody)
	if err != nil {
		return fmt.Errorf("JWKS: %w", err)
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	res, err := j.client.Do(req)
	if err != nil {
		return fmt.Errorf("JWKS: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("JWKS: %s", res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, jwksLimit+1))
	if err != nil {
		return fmt.Errorf("JWKS: %w", err)
	}
	if len(text) > jwksLimit {
		return fmt.Errorf("JWKS: more than %d bytes", jwksLimit)
	}
	if last := j.keys.Load(); last != nil && bytes.Equal(last.text, text) {
		return nil
	}
	set, err := parseJWKS(text)
	if err != nil {
		return err
	}
	j.keys.Store(set)
	return nil
}

// parseJWKS reads a key set. Keys that cannot check a signature here (of
// encryption, symmetric, of curves that are not known) are passed over, as RFC
// 7517, section 5, asks.
func parseJWKS(text []byte) (*verification, error) {
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("JWKS: %w", err)
	}
	store := jwkset.NewMemoryStorage()
	usable := 0
	for _, written := range set.Keys {
		if written.KTY == jwkset.KtyOct || written.USE == jwkset.UseEnc {
			continue
		}
		key, err := jwkset.NewJWKFromMarshal(written, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil {
			continue
		}
		if err := store.KeyWrite(context.Background(), key); err != nil {
			return nil, fmt.Errorf("JWKS: %w", err)
		}
		usable++
	}
	if usable == 0 {
		return nil, fmt.Errorf("JWKS: none of its %d keys checks signatures", len(set.Keys))
	}
	keys, err := keyfunc.New(keyfunc.Options{Storage: store})
	if err != nil {
		return nil, fmt.Errorf("JWKS: %w", err)
	}
	return &verification{keys: keys, text: text}, nil
}
