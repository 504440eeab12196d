package proxy

// upstream is a compiled backend: its transport, ready to be used.
type upstream struct{}
