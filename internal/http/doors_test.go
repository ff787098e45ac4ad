package http

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/door"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/threads"
)

func hosts(t *testing.T, list ...string) door.Hosts {
	t.Helper()
	h, err := door.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// changing are the requests that change something and need no body.
var changing = [][2]string{
	{
		"POST",
		"/threads/t/fork",
	},
	{"POST", "/threads/t/prune"},
	{"POST", "/threads/t/checkpoints"},
	{"POST", "/threads/t/runs/r/cancel"},
	{"POST", "/threads/t/rewind"},
	{"DELETE", "/threads/t"},
}

func anonymous(t *testing.T, allowed ...string) func(*Config) {
	return func(c *Config) {
		c.Door.LoopbackOnly, c.Door.Anonymous, c.Door.Hosts, c.Door.Origins = false, true, hosts(t, "localhost:8080"),
			origins(t, false, allowed...)
		c.UI, c.Metrics = says("page"), says("metrics")
	}
}

// send sends a request by a name of its own choice and returns the status and the code.
func send(t *testing.T, url, method, path, host, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer exchange.ErrorBody
	if res.StatusCode >= http.StatusBadRequest {
		if err := json.NewDecoder(res.Body).
			Decode(&answer); err != nil || answer.Error.Code == "" || answer.Error.Hint == "" {
			t.Errorf("%s %s: %d without a code or a hint: %v", method, path, res.StatusCode, err)
		}
	}
	return res.StatusCode, answer.Error.Code
}

// TestRebinding: a page whose own name was made to point here can do nothing with an
// anonymous server, though to the browser it is of the same origin.
func TestRebinding(t *testing.T) {
	f := &fake{}
	s := serve(t, f, anonymous(t))
	const host, origin = "rebind.attacker.example:8080", "http://rebind.attacker.example:8080"
	for _, r := range append([][2]string{
		{"GET", "/threads"}, {"GET", "/threads/t"}, {"GET", "/threads/t/messages"}, {"GET", "/threads/t/stream"},
		{"GET", "/agents"},
		{"POST", "/runs"}, {"POST", "/agents/a/runs"}, {"POST", "/maintenance/delete-inactive"}, {"GET", "/"},
		{"GET", "/ui/app.js"}, {"GET", "/openapi.json"},
		{"GET", "/nowhere"},
	}, changing...) {
		code, name := send(t, s.URL, r[0], r[1], host, "", "Origin", origin, "Sec-Fetch-Site", "same-origin",
			"Content-Type", "application/json")
		if code != http.StatusForbidden || name != codes.ForbiddenHost {
			t.Errorf("%s %s: %d %s", r[0], r[1], code, name)
		}
	}
	if f.asked != "" {
		t.Error("a thread was read")
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code, _ := send(t, s.URL, "GET", path, "10.1.2.3:8080", ""); code != http.StatusOK {
			t.Errorf("a monitor gets %d from %s", code, path)
		}
	}
	if code, _ := send(t, s.URL, "GET", "/threads/t", "localhost:8080", "", "Sec-Fetch-Site",
		"same-origin"); code != http.StatusOK {
		t.Errorf("the server's own page gets %d", code)
	}
}

// TestCrossSite: pages of other sites cannot change anything on a server without keys, in
// whatever way their request was made simple.
func TestCrossSite(t *testing.T) {
	const here, other, listed = "http://localhost:8080", "https://evil.example", "https://app.example.com"
	for name, tt := range map[string]struct {
		header []string
		want   int // 0: the request is served
	}{
		"another origin":           {[]string{"Origin", other}, 403},
		"another origin, as JSON":  {[]string{"Origin", other, "Content-Type", "application/json"}, 403},
		"an origin without a name": {[]string{"Origin", "null", "Content-Type", "application/json"}, 403},
		"another port": {[]string{"Origin", "http://localhost:3000", "Content-Type", "application/json"},
			403},
		"a longer name": {[]string{"Origin", here + ".evil.example", "Content-Type", "application/json"},
			403},
		"only Sec-Fetch-Site": {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"an old page of this name": {[]string{"Origin", here, "Sec-Fetch-Site", "cross-site", "Content-Type",
			"application/json"},
			403},
		"its own page, but a form": {[]string{"Origin", here, "Content-Type", "application/x-www-form-urlencoded"},
			415},
		"its own page, but text":       {[]string{"Origin", here, "Content-Type", "text/plain"}, 415},
		"its own page, without a type": {[]string{"Origin", here}, 415},
		"its own page": {[]string{"Origin", here, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"},
			0},
		"a listed page": {[]string{"Origin", listed, "Sec-Fetch-Site", "cross-site", "Content-Type",
			"application/json; charset=utf-8"},
			0},
		"no browser": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &fake{info: &threads.Info{ID: "t", Status: threads.StatusIdle}}, anonymous(t, listed))
			for _, r := range changing {
				want := tt.want
				if r[0] == "DELETE" && want == 415 {
					want = 0 // a page cannot DELETE without asking first
				}
				code, text := send(t, s.URL, r[0], r[1], "localhost:8080", "", tt.header...)
				if refused := code == 403 || code == 415; want != 0 && code != want || want == 0 && refused {
					t.Errorf("%s %s: %d %s, want %d", r[0], r[1], code, text, want)
				}
			}
		})
	}
}

// TestAnonymousReads: a page of another site gets no answer that it could read, and may
// not load one blindly, but a link to the page works.
func TestAnonymousReads(t *testing.T) {
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for _, tt := range []struct {
		path   string
		header []string
		want   int
	}{
		{"/threads/t", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"/threads/t", link, 403},
		{"/", link, 200},
		{"/ui/app.js", link, 200},
		{"/threads/t", []string{"Sec-Fetch-Site", "none"}, 200},
		{"/threads/t", []string{"Sec-Fetch-Site", "same-origin"}, 200},
	} {
		for mode, change := range map[string]func(*Config){"anonymous": anonymous(t),
			"loopback": func(c *Config) { c.UI = says("page") }} {
			s := serve(t, &fake{}, change)
			if code, text := send(t, s.URL, "GET", tt.path, "localhost:8080", "", tt.header...); code != tt.want {
				t.Errorf("%s: %s %v: %d %s", mode, tt.path, tt.header, code, text)
			}
		}
	}
}

// TestForwarded: what a proxy has forwarded looks local, so a loopback server refuses it
// unless it was told that the proxy may.
func TestForwarded(t *testing.T) {
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host"} {
		s := serve(t, &fake{}, nil)
		if code, name := send(t, s.URL, "GET", "/threads", "localhost", "", header, "203.0.113.9"); code != 403 ||
			name != codes.Forbidden {
			t.Errorf("%s: %d %s", header, code, name)
		}
		s = serve(t, &fake{}, func(c *Config) {
			c.Door.BehindProxy, c.Door.Hosts = true,
				hosts(t, "agents.example.com")
		})
		for _, host := range []string{"localhost", "agents.example.com"} {
			if code, name := send(t, s.URL, "GET", "/threads", host, "", header, "203.0.113.9"); code != 200 {
				t.Errorf("%s for %s, allowed: %d %s", header, host, code, name)
			}
		}
	}
}

// TestHostsWithKeys: a server with keys checks the Host only if it is told the names.
func TestHostsWithKeys(t *testing.T) {
	keyed := func(c *Config) { c.Door.LoopbackOnly = false }
	if code, _ := send(t, serve(t, &fake{}, keyed).URL, "GET", "/threads", "any.example", ""); code != 200 {
		t.Errorf("%d", code)
	}
	s := serve(t, &fake{}, func(c *Config) { keyed(c); c.Door.Hosts = hosts(t, "agents.example.com") })
	for host, want := range map[string]int{"agents.example.com": 200, "other.example": 403} {
		if code, _ := send(t, s.URL, "GET", "/threads", host, ""); code != want {
			t.Errorf("%s: %d", host, code)
		}
	}
}

// TestContentTypes: on every server, a body must call itself JSON, and so must a request
// of a page without a body.
func TestContentTypes(t *testing.T) {
	s := serve(t, &fake{}, func(c *Config) { c.Door.LoopbackOnly = false })
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
		"text/json", "application/jsonp", "application/json, text/plain", "application/json;", "application"} {
		want := 415
		if kind == "application/json;" {
			want = 0 // an empty parameter is ignored
		}
		for _, r := range changing[:5] {
			for _, with := range [][2]string{{"", "https://app.example.com"}, {"{}", ""},
				{"{}", "https://app.example.com"}} {
				header := []string{"Content-Type", kind}
				if with[1] != "" {
					header = append(header, "Origin", with[1])
				}
				if code, _ := send(t, s.URL, r[0], r[1], "any.example", with[0],
					header...); want == 415 != (code == 415) {
					t.Errorf("%s %s as %q with body %q, origin %q: %d", r[0], r[1], kind, with[0], with[1], code)
				}
			}
		}
	}
	for _, r := range changing[:5] {
		if code, _ := send(t, s.URL, r[0], r[1], "any.example", ""); code == 415 {
			t.Errorf("%s %s without a body: %d", r[0], r[1], code)
		}
	}
}

// TestResourcePolicy: responses cannot be loaded into pages of other origins, except
// where CORS allows them to be read.
func TestResourcePolicy(t *testing.T) {
	const app = "https://app.example.com"
	s := serve(t, &fake{}, func(c *Config) {
		c.Door.LoopbackOnly, c.Door.Origins, c.UI = false, origins(t, false, app), says("page")
	})
	for _, path := range []string{"/threads", "/nowhere", "/", "/openapi.json", "/healthz"} {
		for origin, want := range map[string]string{"": "same-origin", "https://evil.example": "same-origin",
			app: "cross-origin"} {
			var header []string
			if origin != "" {
				header = []string{"Origin", origin}
			}
			res, _ := do(t, "GET", s.URL+path, "", header...)
			if got := res.Header.Values("Cross-Origin-Resource-Policy"); len(got) != 1 || got[0] != want {
				t.Errorf("%s for %q: %q", path, origin, got)
			}
		}
	}
}
