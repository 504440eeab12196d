package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// call is a request to make. Its path holds the query.
type call struct {
	kind, method, path, body string
	// wait is for how many seconds an answer is of use (RFC 7240, 4.3); 0 says nothing.
	wait int
	// job asks for a job (Prefer: respond-async).
	job bool
}

func get(kind, path string) call { return call{kind: kind, method: http.MethodGet, path: path} }

func post(kind, path, body string) call {
	return call{kind: kind, method: http.MethodPost, path: path, body: body}
}

// reply is what became of a call.
type reply struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
	tries  int // where more than one was possible
	err    error
}

// send makes the call at the server with that address, and reads its answer to
// the end.
func (c call) send(ctx context.Context, client *http.Client, server string) reply {
	began := time.Now()
	var r reply
	req, err := http.NewRequestWithContext(ctx, c.method, server+c.path, strings.NewReader(c.body))
	if err != nil {
		return reply{err: err}
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.job {
		req.Header.Set("Prefer", "respond-async")
	}
	if c.wait > 0 {
		req.Header.Set("Prefer", fmt.Sprintf("wait=%d", c.wait))
	}
	res, err := client.Do(req)
	if err == nil {
		r.status, r.header = res.StatusCode, res.Header
		r.body, err = io.ReadAll(res.Body)
		_ = res.Body.Close() // it was read to its end, or the error says why not
	}
	r.took, r.err = time.Since(began), err
	return r
}

// newClient makes a client for many calls at once to one server.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: 10 * time.Second}}
}
