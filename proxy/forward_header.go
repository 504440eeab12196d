package proxy

import (
	"net"
	"net/http"
	"strings"
)

// forwarded tells the upstream whom it answers: X-Forwarded-For, -Host and
// -Proto, and the same as RFC 7239 Forwarded. What a trusted peer says is
// kept, and the peer's address appended; anybody else's word is dropped, with
// the other headers from which servers make addresses and URLs.
//
// out is the upstream's header, of which httputil has removed the four.
func (c *call) forwarded(out http.Header, in *http.Request) {
	c.names = [4]string{"unknown", in.Host, "http"}
	if in.TLS != nil {
		c.names[2] = "https"
	}
	if ip, _, err := net.SplitHostPort(in.RemoteAddr); err == nil {
		c.names[0] = ip
	}
	c.names[3] = forwardedElement(c.names[0], in.Host, c.names[2])

	if c.x.trusted {
		if prior := in.Header["X-Forwarded-For"]; len(prior) > 0 {
			c.names[0] = strings.Join(prior, ", ") + ", " + c.names[0]
		}
		if prior := in.Header.Get("X-Forwarded-Host"); prior != "" {
			c.names[1] = prior
		}
		if prior := in.Header.Get("X-Forwarded-Proto"); prior != "" {
			c.names[2] = prior
		}
		if prior := in.Header["Forwarded"]; len(prior) > 0 {
			c.names[3] = strings.Join(prior, ", ") + ", " + c.names[3]
		}
	} else {
		delete(out, "X-Forwarded-Port")
		delete(out, "X-Forwarded-Prefix")
		delete(out, "X-Real-Ip")
	}
	out["X-Forwarded-For"] = c.names[0:1:1]
	out["X-Forwarded-Host"] = c.names[1:2:2]
	out["X-Forwarded-Proto"] = c.names[2:3:3]
	out["Forwarded"] = c.names[3:4:4]
}

// forwardedElement is one element of RFC 7239: for, host and proto.
func forwardedElement(ip, host, proto string) string {
	if strings.Contains(ip, ":") {
		if i := strings.IndexByte(ip, '%'); i >= 0 { // a zone means nothing elsewhere
			ip = ip[:i]
		}
		ip = `"[` + ip + `]"`
	}
	if host == "" || strings.ContainsAny(host, "\"\\") {
		return "for=" + ip + ";proto=" + proto
	}
	// A colon, and whatever else is no token, needs quotes (section 4).
	return "for=" + ip + `;host="` + host + `";proto=` + proto
}
