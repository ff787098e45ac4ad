//go:build noweb

// Package web is the page that the server shows at /: in this build there is none.
package web

import (
	"io"
	"net/http"
)

// Handler returns a handler that says at / that this build has no page; 404 for everything
// else, 405 for methods other than GET and HEAD.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/":
			http.Error(w, "There is no such file.", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Only GET and HEAD.", http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			// An error means that the client went away, and nobody can be told.
			_, _ = io.WriteString(w, "This build has no page (tag noweb); /openapi.json describes every route.\n")
		}
	})
}
