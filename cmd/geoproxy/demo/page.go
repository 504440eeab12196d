package demo

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var page []byte

// mapPage is a map to look at through geoproxy, in one file.
func mapPage(*http.Request) (answer, error) {
	return answer{"text/html; charset=utf-8", page}, nil
}
