package proxy

import "errors"

// UnmarshalText reads the short form of an upstream: just its URL.
func (u *UpstreamConfig) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("must be a URL")
	}
	*u = UpstreamConfig{URL: string(text)}
	return nil
}

// UnmarshalText reads the name of a gate.
func (g *GateRef) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("must be the name of a gate, or a gate")
	}
	*g = GateRef{Name: string(text)}
	return nil
}
