//go:build noweb

package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/web"
)

// TestNoPage: a build without the page says so in one line, and has no files.
func TestNoPage(t *testing.T) {
	for _, c := range []struct {
		method, path string
		code         int
	}{{"GET", "/", http.StatusOK}, {"HEAD", "/", http.StatusOK}, {"POST", "/", http.StatusMethodNotAllowed},
		{"GET", "/ui/app.js", http.StatusNotFound}} {
		w := httptest.NewRecorder()
		web.Handler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.code {
			t.Errorf("%s %s: %d", c.method, c.path, w.Code)
		}
		if text := w.Body.String(); c.code == http.StatusOK &&
			(!strings.Contains(text, "no page") || strings.Count(text, "\n") != 1) {
			t.Errorf("%s says %q", c.path, text)
		}
	}
}
