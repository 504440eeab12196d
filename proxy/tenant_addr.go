package proxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// identityBits is how much of an IPv6 address tells clients apart: a /64 is
// what one subscriber's network has (RFC 6177), and within it a host may take
// any address it likes.
const identityBits = 64

// parseNetwork reads a network in CIDR form, or an address for the network of
// itself alone.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap().WithZone("")
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither a network nor an address", text)
	}
	if network.Addr().Is4In6() && network.Bits() >= 96 {
		return netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96).Masked(), nil
	}
	return network.Masked(), nil
}

// clientAddr is the address of the client: the peer's, unless the peer is a
// trusted proxy; then the nearest hop that no trusted proxy has, read from the
// right, which is the end that the trusted ones have written. Where a hop
// cannot be read, the trusted proxy that wrote it stands for the client. It is
// invalid where the peer has no address.
//
// X-Forwarded-For counts where there is one, else Forwarded (RFC 7239). A
// trusted proxy that writes only Forwarded must take X-Forwarded-For off.
func (t *tenants) clientAddr(c *caller) netip.Addr {
	client := c.Peer.Unmap().WithZone("")
	if !t.isTrusted(client) {
		return client
	}
	lines, forwarded := c.Header["X-Forwarded-For"], false
	if len(lines) == 0 {
		lines, forwarded = c.Header["Forwarded"], true
	}
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var hop string
			// The element of a trusted proxy has no comma within quotes, so
			// splitting from the right cannot be led astray by what is to its left.
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, hop = rest[:comma], rest[comma+1:]
			} else {
				hop, more = rest, false
			}
			if forwarded {
				hop = forwardedFor(hop)
			}
			address, ok := parseHop(hop)
			if !ok {
				return client
			}
			client = address
			if !t.isTrusted(client) {
				return client
			}
		}
	}
	return client
}

func (t *tenants) isTrusted(address netip.Addr) bool {
	for _, network := range t.trusted {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// forwardedFor gives the for parameter of an element of Forwarded.
func forwardedFor(element string) string {
	for more := true; more; {
		var pair string
		pair, element, more = strings.Cut(element, ";")
		if name, value, ok := strings.Cut(pair, "="); ok && strings.EqualFold(strings.TrimSpace(name), "for") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// parseHop reads an address, with or without a port or brackets.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text, _, _ = strings.Cut(inner, "]")
	} else if strings.Count(text, ":") == 1 {
		text, _, _ = strings.Cut(text, ":") // an IPv4 address with a port
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	return address.Unmap().WithZone(""), true
}

// addressID is what stands for an address outside the process. Peers without
// an address share one.
func (t *tenants) addressID(client netip.Addr) string {
	var key [16]byte
	if client.IsValid() {
		if client.Is6() {
			masked, err := client.Prefix(identityBits)
			if err == nil {
				client = masked.Addr()
			}
		}
		key = client.As16()
	}
	if id, ok := t.addresses.get(key); ok {
		return id
	}
	id := t.id(kindAddress, string(key[:]))
	t.addresses.put(key, id)
	return id
}
