package http

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, text+" "+r.URL.Path)
	})
}

// TestMounted: mounted handlers need no key, because browsers load pages, and
// Prometheus scrapes metrics, without one.
func TestMounted(t *testing.T) {
	locked := func(*http.Request) (holdfast.Principal, error) {
		return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "Who are you?").WithHint("Send a key.")
	}
	s := serve(t, &fake{}, func(c *Config) { c.Authenticate, c.UI, c.Metrics = locked, says("page"), says("metrics") })
	for path, want := range map[string]string{"/": "page /", "/ui/": "page /ui/", "/ui/a/b.js": "page /ui/a/b.js",
		"/metrics": "metrics /metrics"} {
		if res, body := do(t, "GET", s.URL+path, ""); res.StatusCode != 200 || body != want {
			t.Errorf("%s: %d %q", path, res.StatusCode, body)
		}
	}
	for _, path := range []string{"/", "/ui/app.js"} {
		if res, _ := do(t, "HEAD", s.URL+path, ""); res.StatusCode != 200 {
			t.Errorf("HEAD %s: %d", path, res.StatusCode)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if res, _ := do(t, "GET", s.URL+path, ""); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	for _, path := range []string{"/threads", "/agents"} {
		if res, _ := do(t, "GET", s.URL+path, ""); res.StatusCode != 401 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestNotMounted(t *testing.T) {
	s := serve(t, &fake{}, nil)
	for _, path := range []string{"/", "/ui/", "/metrics", "/agents", "/agents/a/capabilities"} {
		if res, body := do(t, "GET", s.URL+path, ""); res.StatusCode != 404 || !strings.Contains(body, `"hint"`) {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
}

// TestMountedLocally: on a server without keys, a page from elsewhere can reach
// nothing, not even the metrics.
func TestMountedLocally(t *testing.T) {
	s := serve(t, &fake{}, func(c *Config) { c.UI, c.Metrics = says("page"), says("metrics") })
	for _, path := range []string{"/", "/ui/", "/metrics", "/openapi.json", "/healthz"} {
		if res, _ := do(t, "GET", s.URL+path, "", "Origin",
			"https://evil.example"); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// TestReadinessIsRemembered: anybody may ask whether the server is ready, so the store is
// asked once a second.
func TestReadinessIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := 0, error(nil)
		h := &serverAPI{ready: func(context.Context) error { asked++; return answer }}
		down := errors.New("down")
		for _, tt := range []struct {
			after  time.Duration
			answer error
			want   error
			asked  int
		}{
			{0, nil, nil, 1},
			{0, down, nil, 1},
			{999 * time.Millisecond, down, nil, 1},
			{time.Millisecond, down, down, 2},
			{0, nil, down, 2},
			{time.Second, nil, nil, 3},
			{time.Second, down, down, 4},
			{time.Second, nil, nil, 5},
			{time.Second, down, down, 6},
			{0, nil, down, 6},
			{time.Second, nil, nil, 7},
		} {
			time.Sleep(tt.after)
			answer = tt.answer
			if err := h.readyNow(t.Context()); !errors.Is(err, tt.want) || asked != tt.asked {
				t.Errorf("%+v: %v, asked %d times", tt, err, asked)
			}
		}
	})
}

// TestReadinessOutlivesItsCaller: a client that asks and leaves does not make the server
// unready for others.
func TestReadinessOutlivesItsCaller(t *testing.T) {
	h := &serverAPI{ready: func(ctx context.Context) error { return ctx.Err() }}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := h.readyNow(ctx); err != nil {
		t.Error(err)
	}
}

// TestHTTP2KeepsItsConnection: in a server with HTTP/2, a refusal ends its request, and not
// the connection, which others use.
func TestHTTP2KeepsItsConnection(t *testing.T) {
	s := httptest.NewUnstartedServer(serve(t, &fake{}, func(c *Config) { c.Door.LoopbackOnly = false }).Config.Handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for i := range 3 {
		traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
			if c.Reused != (i > 0) {
				t.Errorf("request %d uses the same connection: %t", i, c.Reused)
			}
		}})
		body, rest := io.Pipe()
		req, err := http.NewRequestWithContext(traced, http.MethodPost, s.URL+"/runs", body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Client().Do(req) // without a content type
		if err != nil {
			t.Fatal(err)
		}
		if res.ProtoMajor != 2 || res.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%s %s", res.Proto, res.Status)
		}
		if err := errors.Join(rest.Close(), res.Body.Close()); err != nil {
			t.Error(err)
		}
	}
}
