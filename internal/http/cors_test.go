package http

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/door"
)

func origins(t *testing.T, credentials bool, list ...string) door.Origins {
	t.Helper()
	o, err := door.ParseOrigins(list, credentials)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestCORS(t *testing.T) {
	nobodyKnown := func(c *Config) {
		c.Door.LoopbackOnly = false
		c.Authenticate = func(*http.Request) (holdfast.Principal, error) {
			return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "Who are you?").WithHint("Send a key.")
		}
	}
	const local, app, evil = "http://localhost:3000", "https://app.example.com", "https://evil.example"
	for name, c := range map[string]struct {
		change    func(*Config)
		origin    string
		allow     string // Access-Control-Allow-Origin
		get       int
		preflight int
	}{
		"no keys, this machine": {nil, local, local, 200, 204},
		"no keys, elsewhere":    {nil, evil, "", 403, 403},
		"no keys, allowed":      {func(c *Config) { c.Door.Origins = origins(t, false, app) }, app, app, 200, 204},
		"no keys, * names none": {func(c *Config) { c.Door.Origins = origins(t, false, "*") }, evil, "", 403, 403},
		// A page behind a proxy has an Origin too, so it is served; pages of other
		// origins cannot read the response.
		"keys, none allowed":     {nobodyKnown, app, "", 401, 403},
		"keys, not this machine": {nobodyKnown, local, "", 401, 403},
		"keys, allowed": {func(c *Config) { nobodyKnown(c); c.Door.Origins = origins(t, false, app) },
			app, app, 401, 204},
		"keys, another is allowed": {func(c *Config) { nobodyKnown(c); c.Door.Origins = origins(t, false, app) },
			evil, "", 401, 403},
		"keys, all": {func(c *Config) { nobodyKnown(c); c.Door.Origins = origins(t, false, "*") },
			evil, "*", 401, 204},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &fake{}, c.change)
			res, body := do(t, "GET", s.URL+"/threads", "", "Origin", c.origin)
			if res.StatusCode != c.get || res.Header.Get("Access-Control-Allow-Origin") != c.allow {
				t.Errorf("GET: %d %v %s", res.StatusCode, res.Header, body)
			}
			if res.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
			if c.get == 401 && res.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("WWW-Authenticate: %q", res.Header.Get("WWW-Authenticate"))
			}
			res, _ = do(t, "OPTIONS", s.URL+"/runs", "", "Origin", c.origin, "Access-Control-Request-Method", "POST")
			if res.StatusCode != c.preflight || res.Header.Get("Access-Control-Allow-Origin") != c.allow {
				t.Errorf("preflight: %d %v", res.StatusCode, res.Header)
			}
			if c.preflight == 204 && res.Header.Get("Access-Control-Allow-Methods") !=
				"DELETE, GET, HEAD, OPTIONS, PATCH, POST" {
				t.Errorf("methods: %q", res.Header.Get("Access-Control-Allow-Methods"))
			}
			if allowed := res.Header.Get("Access-Control-Allow-Headers"); c.preflight == 204 &&
				!strings.Contains(allowed, "If-Match") {
				t.Errorf("headers: %q", allowed)
			}
		})
	}
}

// TestRefusalsAreReadable: an allowed page is told why its request was refused, and every
// answer says which pages may load it.
func TestRefusalsAreReadable(t *testing.T) {
	const app = "https://app.example.com"
	s := serve(t, &fake{}, func(c *Config) { c.Door.LoopbackOnly, c.Door.Origins = false, origins(t, false, app) })
	named := serve(t, &fake{}, func(c *Config) {
		c.Door.LoopbackOnly = false
		c.Door.Origins, c.Door.Hosts = origins(t, false, app), hosts(t, "agents.example.com")
	})
	for _, c := range []struct {
		method, url, body string
		want              int
	}{
		{"GET", s.URL + "/threads", "{}", 400},
		{"POST", s.URL + "/runs", "hello", 415},
		{"GET", named.URL + "/threads", "", 403},
	} {
		for origin, policy := range map[string]string{app: "cross-origin", "https://evil.example": "same-origin"} {
			res, body := do(t, c.method, c.url, c.body, "Origin", origin, "Content-Type", "text/plain")
			readable := res.Header.Get("Access-Control-Allow-Origin") == app
			if res.StatusCode != c.want || readable != (origin == app) ||
				res.Header.Get("Cross-Origin-Resource-Policy") != policy || res.Header.Get("Vary") != "Origin" {
				t.Errorf("%s of %s: %d %v %s", c.method, origin, res.StatusCode, res.Header, body)
			}
		}
	}
}

func TestCredentials(t *testing.T) {
	s := serve(t, &fake{}, func(c *Config) { c.Door.Origins = origins(t, true, "https://*.example.com") })
	res, _ := do(t, "GET", s.URL+"/threads", "", "Origin", "https://a.example.com")
	if res.Header.Get("Access-Control-Allow-Credentials") != "true" || res.Header.Get("Vary") != "Origin" ||
		res.Header.Get("Access-Control-Expose-Headers") != "Retry-After, ETag, Holdfast-Run, "+
			"Holdfast-Side-Run, Holdfast-Owner" {
		t.Errorf("%v", res.Header)
	}
}
