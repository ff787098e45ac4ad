package mcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp"
)

// TestValidate: each mistake in the options is named with its field.
func TestValidate(t *testing.T) {
	t.Parallel()
	good := mcp.Options{
		Name:    "srv",
		URL:     "https://example.com/mcp",
		Headers: map[string]string{"Authorization": "Bearer x"},
	}
	if err := good.Validate(); err != nil {
		t.Errorf("the good options: %v", err)
	}
	for field, spoil := range map[string]func(o *mcp.Options){
		"name: ":            func(o *mcp.Options) { o.Name = "a_b" },
		"command: set":      func(o *mcp.Options) { o.URL, o.Headers = "", nil },
		"command: the":      func(o *mcp.Options) { o.URL, o.Headers, o.Command = "", nil, []string{""} },
		"url: set either":   func(o *mcp.Options) { o.Command = []string{"x"} },
		"url: it":           func(o *mcp.Options) { o.URL = "ftp://x" },
		"env: ":             func(o *mcp.Options) { o.Env = map[string]string{"A": "b"} },
		"headers: headers":  func(o *mcp.Options) { o.URL, o.Command = "", []string{"x"} },
		"headers: \"a b\"":  func(o *mcp.Options) { o.Headers = map[string]string{"a b": "c"} },
		"headers: \"A\"":    func(o *mcp.Options) { o.Headers = map[string]string{"A": "b\nc"} },
		"headers: mcp-name": func(o *mcp.Options) { o.Headers = map[string]string{"mcp-name": "c"} },
		"effect: ":          func(o *mcp.Options) { o.Effect = holdfast.EffectQuery },
		"effects.x: ":       func(o *mcp.Options) { o.Effects = map[string]holdfast.Effect{"x": "twice"} },
		"inDoubt: ":         func(o *mcp.Options) { o.InDoubt = "maybe" },
		"tools: ":           func(o *mcp.Options) { o.Tools = []string{"["} },
		"exceptTools: ":     func(o *mcp.Options) { o.ExceptTools = []string{""} },
		"allow[0]: ":        func(o *mcp.Options) { o.Allow = []string{"a b"} },
		"proxy: ":           func(o *mcp.Options) { o.Proxy = "x" },
		"timeout: ":         func(o *mcp.Options) { o.Timeout = -time.Second },
		"maxTools: ":        func(o *mcp.Options) { o.MaxTools = -1 },
	} {
		o := good
		spoil(&o)
		err := o.Validate()
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := mcp.Open(o); err == nil {
			t.Errorf("%s: it is used", field)
		}
	}
}

// TestToolSays: a tool tells where it is from, and what its server says of it.
func TestToolSays(t *testing.T) {
	t.Parallel()
	f := newFake(t, `{"name":"a.b","title":"The `+
		`title","inputSchema":{"type":"object"},"annotations":{"destructiveHint": true}}`, nil)
	s := open(t, mcp.Options{URL: f.URL, InDoubt: holdfast.DoubtAsk})
	got := tool(t, s, "srv_a_b").(*mcp.Tool)
	if got.Server() != s || s.Name() != "srv" || got.Remote() != "a.b" ||
		string(got.Annotations()) != `{"destructiveHint":true}` {
		t.Errorf("it says %s %s %s", got.Server().Name(), got.Remote(), got.Annotations())
	}
	if spec := got.Spec(); spec.Description != "The title" || spec.InDoubt != holdfast.DoubtAsk ||
		spec.Timeout <= mcp.DefaultMaxDuration {
		t.Errorf("the specification is %+v", spec)
	}
}

// TestPrivate: a server with a private address is not reached unless it is listed.
func TestPrivate(t *testing.T) {
	t.Parallel()
	f := newFake(t, oneTool, nil)
	s := opened(t, mcp.Options{URL: f.URL, Allow: []string{"10.0.0.0/8"}})
	late, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 20 { // what is known is said to who asks too late, too
		if err := s.Ready(late); err == nil || !has(err.Error(), "127.0.0.1") {
			t.Errorf("the error is %v", err)
		}
		cancel()
	}
	if n := len(f.got("server/discover")); n != 0 {
		t.Errorf("it was reached %d times", n)
	}
}
