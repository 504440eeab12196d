package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/proxy"
)

// explainCmd says what would happen to a request. It sends nothing.
type explainCmd struct {
	origin
	Method string   `short:"X" placeholder:"METHOD" help:"Defaults to GET, and to POST with a body."`
	Header []string `short:"H" placeholder:"'NAME: VALUE'" sep:"none" help:"A header of the request. May be given again."`
	Data   string   `short:"d" placeholder:"@FILE" help:"The body of the request, or the file that holds it."`
	Client string   `placeholder:"ADDRESS" default:"127.0.0.1" help:"The address that the request comes from."`
	JSON   bool     `name:"json" help:"Print it as JSON."`
	URL    string   `arg:"" help:"The URL, or its path and query alone."`
}

// Run prints the explanation. A request that would be refused is explained as
// well as any other.
func (c *explainCmd) Run(s *session) error {
	file, err := c.load(s)
	if err != nil {
		return err
	}
	ask, err := c.ask()
	if err != nil {
		return err
	}
	p, err := offline(file)
	if err != nil {
		return err
	}
	defer p.Close()
	explanation := p.Admission().Explain(ask)
	if c.JSON {
		return printJSON(s, explanation)
	}
	_, err = fmt.Fprint(s.stdout, explanation)
	return err
}

// ask makes the request that is asked about. It takes the URL apart by itself:
// a request is priced by its bytes, and they are to stay as they were written.
func (c *explainCmd) ask() (*proxy.Ask, error) {
	peer, err := netip.ParseAddr(c.Client)
	if err != nil {
		return nil, errors.New("--client must be an IP address")
	}
	ask := &proxy.Ask{Peer: peer, Arrived: time.Now()}
	ask.Host, ask.Path, ask.Query = split(c.URL)
	if strings.ContainsAny(c.URL, " \t\r\n") || !strings.HasPrefix(ask.Path, "/") {
		return nil, errors.New("the URL must be http://host/path?query, or begin with /")
	}
	if ask.Header, err = headers(c.Header); err != nil {
		return nil, err
	}
	if host := ask.Header.Get("Host"); host != "" {
		ask.Host = host
		ask.Header.Del("Host")
	}
	body := []byte(c.Data)
	if name, isFile := strings.CutPrefix(c.Data, "@"); isFile {
		if body, err = os.ReadFile(name); err != nil { //nolint:gosec // the caller names the file
			return nil, err
		}
	}
	ask.Method = http.MethodGet
	if len(body) > 0 {
		ask.Method = http.MethodPost
		ask.Body = classify.Body{Length: int64(len(body))}
		ask.ReadBody = func(most int64, _ time.Duration) classify.Body {
			prefix, _ := io.ReadAll(io.LimitReader(bytes.NewReader(body), most)) // memory does not fail
			return classify.Body{Prefix: prefix, Length: int64(len(body)), Whole: len(prefix) == len(body)}
		}
	}
	if c.Method != "" {
		ask.Method = c.Method
	}
	return ask, nil
}

// split takes a URL apart into host, path and query, each as it was written.
func split(url string) (host, path, query string) {
	url, _, _ = strings.Cut(url, "#")
	url, query, _ = strings.Cut(url, "?")
	host = "localhost"
	if _, after, absolute := strings.Cut(url, "://"); absolute {
		var rest string
		host, rest, _ = strings.Cut(after, "/")
		return host, "/" + rest, query
	}
	return host, url, query
}

func headers(lines []string) (http.Header, error) {
	h := make(http.Header, len(lines))
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("%q is no header: write 'Name: value'", line)
		}
		h.Add(name, value)
	}
	return h, nil
}
