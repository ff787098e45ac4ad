package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// TestNoDowngrade: a failure that says nothing about the server does not make an old one of
// it, at the first connection or later.
func TestNoDowngrade(t *testing.T) {
	t.Parallel()
	w := serveWeb(t, newServer(), true)
	var failing atomic.Bool
	var initialized atomic.Int32
	failing.Store(true)
	w.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		if strings.Contains(body, `"initialize"`) {
			initialized.Add(1)
		}
		if failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return failing.Load()
	})
	s := opened(t, mcp.Options{URL: w.URL})
	if err := s.Ready(t.Context()); err == nil || !has(err.Error(), "503") {
		t.Fatalf("the first attempt: %v", err)
	}
	if got := s.Tools(); len(got) != 0 {
		t.Errorf("it has tools: %v", got)
	}
	failing.Store(false)
	wait.Until(t, "it is connected to", func() bool { return len(s.Tools()) > 0 })
	if n := initialized.Load(); n != 0 {
		t.Errorf("it was initialized %d times", n)
	}
}

// TestListenEnds: when only the stream of changes has ended, the list is read again, and the
// next changes are followed too.
func TestListenEnds(t *testing.T) {
	t.Parallel()
	server := newServer()
	w := serveWeb(t, server, true)
	var listening atomic.Value
	listening.Store(func() {})
	w.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		if strings.Contains(body, `"subscriptions/listen"`) {
			ctx, cancel := context.WithCancel(r.Context())
			listening.Store(func() { cancel() })
			*r = *r.WithContext(ctx)
		}
		return false
	})
	s := open(t, mcp.Options{URL: w.URL})
	before := len(s.Tools())
	add := func(name string) {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	end := listening.Load().(func())
	w.intercept(nil)
	end()
	add("first")
	wait.Until(t, "the change is seen", func() bool { return len(s.Tools()) == before+1 })
	add("second")
	wait.Until(t, "the next change is seen", func() bool { return len(s.Tools()) == before+2 })
}

// TestRestart: after a server has gone and come back with other tools, these are used, and
// meanwhile those that were known.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{true, false} {
		t.Run(fmt.Sprint(stateless), func(t *testing.T) {
			t.Parallel()
			server := newServer()
			old, other := serveWeb(t, server, stateless), serveWeb(t, newServer(func(s *sdk.Server) {
				s.AddTool(&sdk.Tool{Name: "zebra", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			}), stateless)
			s := open(t, mcp.Options{URL: old.URL})
			before := len(s.Tools())
			var back atomic.Bool
			old.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
				if back.Load() {
					other.Config.Handler.ServeHTTP(w, r)
				} else {
					w.WriteHeader(http.StatusBadGateway)
				}
				return true
			})
			old.CloseClientConnections()
			wait.Until(t, "the connection is lost", func() bool { return fate(do(t, s, "srv_echo", `{}`)) != fine })
			if got := len(s.Tools()); got != before {
				t.Errorf("there are %d tools, want %d", got, before)
			}
			back.Store(true)
			wait.Until(t, "the other list is read", func() bool { return len(s.Tools()) == before+1 })
			wait.Until(t, "a call is served", func() bool { return fate(do(t, s, "srv_echo", `{}`)) == fine })
		})
	}
}

// TestOldServers: a server that is a process may be silent when it is asked what it does not
// know, may say on its standard output what is no message, or never read.
func TestOldServers(t *testing.T) {
	t.Parallel()
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		o := process(t, "silent")
		o.ConnectTimeout = 6 * time.Second // half of which it is asked what it does not know
		s := open(t, o)
		if r, err := do(t, s, "srv_old", `{}`); r.Text != "as ever" || err != nil {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("banner", func(t *testing.T) {
		t.Parallel()
		s := open(t, process(t, "banner"))
		if got := fate(do(t, s, "srv_echo", `{}`)); got != fine {
			t.Errorf("the call is %s", got)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		o := process(t, "deaf")
		o.ConnectTimeout = 100 * time.Millisecond
		s := opened(t, o)
		if err := s.Ready(t.Context()); err == nil {
			t.Error("it is ready")
		}
	})
}

// TestRefusedTools: what cannot be a tool is left out, with the reason in the log, and the
// others are used.
func TestRefusedTools(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	var log logged
	f := newFake(t, strings.Join([]string{
		`{"name":"good","description":"does ` +
			`good","inputSchema":{"properties":{"b":{"const":9007199254740993},"a":{}}}}`,
		`{"name":"null","inputSchema":null}`,
		`{"name":"none"}`,
		`{"name":"list","inputSchema":[]}`,
		`{"name":"string","inputSchema":{"type":"string"}}`,
		`{"name":"wrong","inputSchema":{"type":"object","properties":7}}`,
		`{"name":"elsewhere","inputSchema":{"type":"object","properties":{"a":{"$ref":"http://example.com/schema"}}}}`,
		`{"name":"a name","inputSchema":{"type":"object"}}`,
		`{"name":7}`,
		`{"name":"twice","inputSchema":{"type":"object"}}`,
		`{"name":"twice","inputSchema":{"type":"object"}}`,
		`{"name":"a.b","inputSchema":{"type":"object"}}`,
		`{"name":"a_b","inputSchema":{"type":"object"}}`,
		`{"name":"` + long + `","inputSchema":{"type":"object"}}`,
		`{"name":"header","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}}`,
		`{"name":"secret","inputSchema":{"type":"object"}}`,
		`{"name":"deep","inputSchema":{"type":"object","default":` + strings.Repeat("[", 300) +
			strings.Repeat("]", 300) + `}}`,
		`null`,
	}, ","), nil)
	s := open(t, mcp.Options{URL: f.URL, ExceptTools: []string{"secret"}, Log: log.logger()})
	want := "srv_a_b srv_a_b_2e7336dc srv_good srv_twice " +
		"srv_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_09ecb6eb"
	if got := strings.Join(names(s), " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, name := range names(s) {
		if len(name) > 64 {
			t.Errorf("%s has %d characters", name, len(name))
		}
	}
	if got := string(tool(t, s, "srv_good").
		Spec().Parameters); got != `{"properties":{"a":{},"b":{"const":9007199254740993}},"type":"object"}` {
		t.Errorf("the schema is %s", got)
	}
	for _, name := range []string{"null", "none", "list", "string", "wrong", "elsewhere", `"a name"`, "twice",
		"header"} {
		if !has(log.String(), "tool="+name+" why=") {
			t.Errorf("the log does not tell of %s:\n%s", name, log.String())
		}
	}
	if refused := s.Refused(); len(refused) != 12 || !slices.ContainsFunc(refused, func(r mcp.Refused) bool {
		return r.Name == "deep" && r.Why == "what describes it is nested more than 256 deep"
	}) {
		t.Errorf("refused: %v", refused)
	}
}

// TestParamHeaders: arguments that the server wants in headers are there too.
func TestParamHeaders(t *testing.T) {
	t.Parallel()
	f := newFake(t, `{"name":"work","inputSchema":{"type":"object","properties":{`+
		`"city":{"type":"string","x-mcp-header":"City"},"count":{"type":"integer","x-mcp-header":"Count"},`+
		`"sure":{"type":"boolean","x-mcp-header":"Sure"},`+
		`"deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deep"}}},`+
		`"none":{"type":"string","x-mcp-header":"None"}}}}`,
		func(w http.ResponseWriter, m message) { m.result(w, `{"content":[]}`) })
	s := open(t, mcp.Options{URL: f.URL, Headers: map[string]string{"Authorization": "Bearer swordfish"}})
	if got := fate(do(t, s, "srv_work",
		`{"city":"Köln","count":3,"sure":true,"deep":{"er":"x"},"none":null}`)); got != fine {
		t.Fatalf("the call is %s", got)
	}
	h := f.got("tools/call")[0].Header
	for name, want := range map[string]string{
		"Mcp-Param-City": "=?base64?S8O2bG4=?=", "Mcp-Param-Count": "3", "Mcp-Param-Sure": "true",
		"Mcp-Param-Deep": "x", "Mcp-Param-None": "",
		"Mcp-Method": "tools/call", "Mcp-Name": "work", "Mcp-Protocol-Version": "2026-07-28",
		"Authorization": "Bearer swordfish",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
