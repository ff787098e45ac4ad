//go:build !noweb

package web_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestFrame: the frame of an interface has a policy of its own, in which only what its address names is allowed, and
// an opaque origin even if somebody opens it by itself.
func TestFrame(t *testing.T) {
	t.Parallel()
	r := get(t, http.MethodGet, "/ui/app-frame"+
		"?connect=https://a.example&connect=wss://*.b.example:8443&resource=https://c.example", nil)
	const want = "default-src 'none'; script-src 'unsafe-inline' https://c.example; style-src 'unsafe-inline' " +
		"https://c.example; img-src data: blob: https://c.example; font-src data: https://c.example; media-src data: " +
		"blob: https://c.example; connect-src https://a.example wss://*.b.example:8443; frame-src 'none'; base-uri " +
		"'none'; object-src 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
	if got := r.Header.Get("Content-Security-Policy"); r.StatusCode != http.StatusOK || got != want {
		t.Errorf("%d %s", r.StatusCode, got)
	}
	if body := text(t, r); !strings.Contains(body, "event.source !== parent") {
		t.Error(body)
	}
	for _, query := range []string{"connect=*", "connect=https://a;script-src%20*", "base='self'", "frame=https:",
		"resource=data:", "connect=https://a.example%20'unsafe-eval'",
		strings.Repeat("connect=https://a.example&", 101)} {
		if r := get(t, http.MethodGet, "/ui/app-frame?"+query, nil); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%.50s: %d", query, r.StatusCode)
		}
	}
	if csp := get(t, http.MethodGet, "/ui/app-frame",
		nil).Header.Get("Content-Security-Policy"); !strings.Contains(csp, "connect-src 'none'") {
		t.Error(csp)
	}
	if csp := get(t, http.MethodGet, "/", nil).Header.Get("Content-Security-Policy"); !strings.Contains(csp,
		"frame-src 'self'") {
		t.Error(csp)
	}
}
