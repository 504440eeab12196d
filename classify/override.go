package classify

import "net/http"

// MethodOverride is the method that a header asks the upstream to take a
// request for, or "". Frameworks know three such headers; whether one is heeded
// is the upstream's affair, so that it is priced in both readings.
func MethodOverride(h http.Header) string {
	for _, name := range [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
		if values := h[name]; len(values) > 0 && values[0] != "" {
			return values[0]
		}
	}
	return ""
}
