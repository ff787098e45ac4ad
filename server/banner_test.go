package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// bannerOf returns the banner of a server that was made and, if listen is set, started.
func bannerOf(t *testing.T, listen bool, change func(*server.Config)) string {
	t.Helper()
	c := config(t)
	c.Version = "v1.2.3"
	change(&c)
	s := must(server.New(c))(t)
	start := s.StartEngine
	if listen {
		start = s.Start
	}
	if err := start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var b strings.Builder
	if err := s.Banner(&b); err != nil {
		t.Error(err)
	}
	return b.String()
}

// TestBanner: the whole banner of a server that listens, and what changes in it.
func TestBanner(t *testing.T) {
	got := bannerOf(t, true, func(c *server.Config) { c.OperatorToken = localToken })
	port := got[strings.Index(got, "localhost:")+len("localhost:") : strings.Index(got, "  (loopback")]
	want := `holdfast v1.2.3
  listening   http://localhost:` + port + `  (loopback only: no API keys are set)
  operator    http://localhost:` + port + `/#token=` + localToken +
		`  (your page: figures, settings, tools by hand, kill)
  store       memory
  durability  none: nothing survives the end of this process
  data        format ` + strconv.Itoa(thread.Format) + `
  agents      a
  recovery    on: runs cut off by a crash are continued; checkpoints per_iteration
  chat        off: while a run is in progress, new messages and edits at /runs are refused; --chat lets them take over
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for want, change := range map[string]func(*server.Config){
		"(API keys required)": func(c *server.Config) {
			c.Authenticate = func(*http.Request) (holdfast.Principal, error) { return me, nil }
		},
		"(for everyone: anonymous access is allowed)": func(c *server.Config) {
			c.AllowAnonymous = true
		},
		"  agents      a  (default model openai/x)\n": func(c *server.Config) { c.DefaultModel = "openai/x" },
		"  agents      demo: scripted, no API key needed; say \"help\"\n": func(c *server.Config) {
			c.Agents[0].Name, c.DefaultModel = "demo", "demo"
		},
		"  agents      a  (default model openai/x, then demo)\n": func(c *server.Config) {
			c.DefaultModel = "openai/x,demo"
		},
		"  agents      a\n  models      a: custom/a, then custom/a#2\n": func(c *server.Config) {
			c.Agents[0].Fallbacks = []holdfast.Model{hello}
		},
		"off: runs cut off by a crash wait": func(c *server.Config) { c.NoRecovery = true },
		"checkpoints manual": func(c *server.Config) {
			c.CheckpointFrequency = "manual"
		},
		"  store       the program's own\n  data        format 1, which": func(c *server.Config) {
			c.OpenStore = func() (store.Store, error) { return struct{ store.Store }{memstore.New()}, nil }
		},
		"/x  (embedded)\n": func(c *server.Config) { c.Store = "file:" + t.TempDir() + "/x" },
	} {
		if got := bannerOf(t, true, change); !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if got := bannerOf(t, false, func(c *server.Config) { c.Chat = true }); strings.Contains(got, "  chat ") {
		t.Errorf("a server with the policy chat says\n%s", got)
	}
	for name, change := range map[string]func(*server.Config){
		"keys": func(c *server.Config) {
			c.Authenticate = func(*http.Request) (holdfast.Principal, error) { return me, nil }
		},
		"anonymous":      func(c *server.Config) { c.AllowAnonymous = true },
		"behind a proxy": func(c *server.Config) { c.BehindProxy = true },
	} {
		if got := bannerOf(t, true, change); strings.Contains(got, "token") {
			t.Errorf("%s: the token lets nobody in, but the banner says\n%s", name, got)
		}
	}
	if got := bannerOf(t, false, func(*server.Config) {}); strings.Contains(got, "listening") {
		t.Errorf("a server that does not listen says\n%s", got)
	}
}

// TestBannerDurability: every level is explained; without a level there is no line.
func TestBannerDurability(t *testing.T) {
	for level, want := range map[store.Level]string{
		store.LevelNone: "  durability  none: nothing survives the end of this process\n",
		store.LevelProcess: "  durability  process: commits survive the end of this process, but not necessarily a " +
			"crash of the machine or of the store\n",
		store.LevelMachine: "  durability  machine: commits survive a crash of the machine\n",
		"":                 "own\n  data        format 1",
	} {
		got := bannerOf(t, false, func(c *server.Config) {
			c.OpenStore = func() (store.Store, error) {
				return &told{Store: memstore.New(), durability: store.Durability{Level: level}}, nil
			}
		})
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s", level, got)
		}
	}
}

// TestBannerFormat: a server says which format it writes into a store that others share.
func TestBannerFormat(t *testing.T) {
	for _, format := range []string{"", "newest", strconv.Itoa(thread.Format)} {
		got := bannerOf(t, false, func(c *server.Config) { c.DataFormat = format })
		if want := fmt.Sprintf("  data        format %d\n", thread.Format); !strings.Contains(got, want) {
			t.Errorf("%q: want %q in\n%s", format, want, got)
		}
	}
	c := config(t)
	c.DataFormat = "7"
	if _, err := server.New(c); err == nil ||
		!strings.Contains(err.Error(), `"7" cannot be written by this version: use 1 to 2 or newest`) {
		t.Errorf("a format that is not written: %v", err)
	}
}

// TestVersion: the version that is configured, or else the program's, is in the agents'
// capabilities.
func TestVersion(t *testing.T) {
	if server.Version() == "" {
		t.Error("there is no version")
	}
	for want, configured := range map[string]string{`"version":"v9"`: "v9", `"version":"` + server.Version() +
		`"`: ""} {
		c := config(t)
		c.Version = configured
		s := must(server.New(c))(t)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/agents/a/capabilities", nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("want %s in %s", want, w.Body)
		}
		if err := s.StartEngine(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
