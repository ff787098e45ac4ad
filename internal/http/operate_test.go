package http

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/figures"
	"github.com/holdfast-agents/holdfast/threads"
)

// operated is a server for operators, for those who read other users' threads, and for trying
// out. It notes what it is asked.
type operated struct {
	err    error
	server error // for what only operators of the server may do, if they may not do it
	kill   bool
	killed chan struct{} // has one for each Kill
	asked  []string
	called ToolByHand
}

func (o *operated) Operates(_ *http.Request, _ holdfast.Principal, action access.Action, _ string) error {
	if action == access.OperateServer && o.server != nil {
		return o.server
	}
	return o.err
}
func (o *operated) Overview(context.Context) Overview {
	s := &figures.Spread{P50: 1, P95: 2, Count: 3}
	f := figures.Figures{
		Series: figures.Series{
			StepSeconds: 10,
			Points:      []figures.Point{{At: time.Unix(0, 0).UTC(), FirstToken: s, Run: s, Commit: s}},
		},
		Errors: []figures.ErrorCount{{Code: "model_failed", Count: 1, LastAt: time.Unix(0, 0).UTC()}},
	}
	return Overview{Process: "p", Store: "memory", Durability: "none", Processes: []string{"p"}, Figures: f}
}
func (o *operated) Settings(context.Context, holdfast.Principal) []Setting {
	return []Setting{{"--addr", "localhost:1", "flag", "the address"}}
}
func (o *operated) CallTool(_ context.Context, _ holdfast.Principal, call ToolByHand) (*ToolOutcome, error) {
	o.called = call
	return &ToolOutcome{Result: json.RawMessage(`"42"`), IdempotencyKey: "k", DurationMs: 1}, nil
}
func (o *operated) ReadAs(_ *http.Request, _ holdfast.Principal, user, thread string) (holdfast.Principal, error) {
	o.asked = append(o.asked, "read "+user+" "+thread)
	return holdfast.Principal{Tenant: "acme", User: user}, o.err
}

func (o *operated) ThreadsOfAll(_ *http.Request, _ holdfast.Principal, page ThreadPage) (*threads.List, error) {
	o.asked = append(o.asked, "list"+string(page.Status))
	return &threads.List{Threads: []threads.Info{{ID: "t9", User: "bob"}}}, o.err
}
func (o *operated) Scripted() bool             { return true }
func (o *operated) CanKill(*http.Request) bool { return o.kill }
func (o *operated) Kill()                      { o.killed <- struct{}{} }
func (o *operated) Process() string            { return "p_1" }

// configOf returns GET /ui/config.json.
func configOf(t *testing.T, base string, header ...string) pageConfig {
	t.Helper()
	res, body := do(t, "GET", base+"/ui/config.json", "", header...)
	var c pageConfig
	if err := json.Unmarshal([]byte(body), &c); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s: %v", res.StatusCode, body, err)
	}
	return c
}

// TestPageConfig: the page learns what the caller may do, and a caller without a key nothing
// but that it needs one.
func TestPageConfig(t *testing.T) {
	none := holdfast.Errorf(codes.Unauthenticated, "No key.")
	authenticate := func(r *http.Request) (holdfast.Principal, error) {
		switch r.Header.Get("Authorization") {
		case "ops":
			return holdfast.Principal{
				Tenant: "acme",
				User:   "ops",
				Rights: &access.Rights{Roles: []access.Role{access.RoleServerOperator, access.RoleRead}},
			}, nil
		case "user":
			return holdfast.Principal{Tenant: "acme", User: "alice"}, nil
		}
		return holdfast.Principal{}, none
	}
	self := &operated{kill: true}
	s := serve(t, &fake{}, func(c *Config) {
		c.Version, c.Door.LoopbackOnly, c.Authenticate, c.Agents = "v1", false, authenticate, twoAgents
		c.Console, c.Demo = self, self
		c.Authorize = func(_ context.Context, who holdfast.Principal, _ access.Action, _ string) error {
			if who.User != "alice" {
				return holdfast.Errorf(codes.Forbidden, "No.")
			}
			return nil
		}
	})
	if c := configOf(t, s.URL); c.Auth != "key" || c.Identified || len(c.Roles) != 0 || c.TenantOperator ||
		c.ServerOperator || c.DefaultAgent != "" || c.Version != "v1" || !c.Demo || !c.Kill {
		t.Errorf("without a key: %+v", c)
	}
	if c := configOf(t, s.URL, "Authorization", "ops"); !c.Identified ||
		!slices.Equal(c.Roles, []access.Role{access.RoleRead, access.RoleServerOperator}) || !c.TenantOperator ||
		!c.ServerOperator || c.DefaultAgent != "" {
		t.Errorf("an operator: %+v", c)
	}
	self.server = none
	if c := configOf(t, s.URL, "Authorization", "ops"); !c.TenantOperator || c.ServerOperator {
		t.Errorf("an operator of the tenant: %+v", c)
	}
	if c := configOf(t, s.URL, "Authorization", "user"); !slices.Equal(c.Roles, []access.Role{access.RoleUser}) ||
		c.DefaultAgent != "helper" {
		t.Errorf("a user: %+v", c)
	}
	for name, change := range map[string]func(*Config){
		"for this machine": func(*Config) {},
		"for everybody": func(c *Config) {
			c.Door.LoopbackOnly, c.Door.Anonymous, c.Door.Hosts = false, true,
				hosts(t, "*")
		},
	} {
		s := serve(t, &fake{}, change)
		if c := configOf(t, s.URL); c.Auth != "none" || c.MaxBody != 1<<10 || !c.Identified || c.TenantOperator ||
			c.ServerOperator || c.Demo || c.Kill || c.DefaultAgent != "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestForOperatorsOnly: the routes for operators ask first, and a server that has none of them
// says so.
func TestForOperatorsOnly(t *testing.T) {
	o := &operated{err: holdfast.Errorf(codes.Forbidden, "You are no operator.")}
	for _, server := range []struct {
		change func(*Config)
		code   int
	}{{func(c *Config) { c.Console, c.Others = o, o }, http.StatusForbidden}, {nil, http.StatusNotFound}} {
		s := serve(t, &fake{}, server.change)
		for _, request := range [][]string{
			{"GET", "/overview"}, {"GET", "/settings"}, {"POST", "/agents/a/tools/f/call"}, {"GET", "/threads?user=*"},
			{"GET", "/threads/t", headerUser, "bob"},
		} {
			if res, body := do(t, request[0], s.URL+request[1], "", request[2:]...); res.StatusCode != server.code {
				t.Errorf("%v: %d %s", request, res.StatusCode, body)
			}
		}
	}
	if o.called.Tool != "" {
		t.Error("the tool was called")
	}
	s := serve(t, &fake{}, func(c *Config) { c.Console = silentSettings{&operated{}} })
	if res, body := do(t, "GET", s.URL+"/settings", ""); res.StatusCode != http.StatusNotFound ||
		!strings.Contains(body, "does not say") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// silentSettings is the console of a program that does not tell its settings.
type silentSettings struct{ *operated }

func (silentSettings) Settings(context.Context, holdfast.Principal) []Setting { return nil }

// TestToolByHand: what is sent reaches the tool, and what is not understood does not.
func TestToolByHand(t *testing.T) {
	o := &operated{}
	s := serve(t, &fake{}, func(c *Config) { c.Console = o })
	at := s.URL + "/agents/my%2Fagent/tools/a%2Fb/call"
	for body, want := range map[string]string{
		``: `{}`, `{}`: `{}`, `{"arguments":null}`: `{}`,
		`{"arguments": {"a": 1}, "idempotencyKey": "k1"}`: `{"a": 1}`, `{"arguments":[1]}`: `[1]`,
	} {
		o.called = ToolByHand{}
		res, got := do(t, "POST", at, body, "Content-Type", typeJSON)
		if res.StatusCode != http.StatusOK || got != `{"result":"42","idempotencyKey":"k","durationMs":1}`+"\n" {
			t.Errorf("%s: %d %s", body, res.StatusCode, got)
		}
		if o.called.Agent != "my/agent" || o.called.Tool != "a/b" || string(o.called.Arguments) != want ||
			(o.called.IdempotencyKey == "k1") != strings.Contains(body, "k1") {
			t.Errorf("%s: called with %+v", body, o.called)
		}
	}
	o.called = ToolByHand{}
	for _, body := range []string{`{"args":{}}`, `[]`, `{"idempotencyKey":7}`, `{"idempotencyKey":"` +
		strings.Repeat("k", 257) + `"}`} {
		if res, got := do(t, "POST", at, body, "Content-Type", typeJSON); res.StatusCode != http.StatusBadRequest ||
			o.called.Tool != "" {
			t.Errorf("%s: %d %s", body, res.StatusCode, got)
		}
	}
}

// TestOtherUsers: an operator who names a user reads as that user wherever threads are read,
// and nowhere else.
func TestOtherUsers(t *testing.T) {
	o := &operated{}
	f := eventful()
	s := serve(t, f, func(c *Config) { c.Console, c.Others, c.Agents, c.Apps = o, o, twoAgents, oneApp{} })
	fill := strings.NewReplacer("{thread}", "t1", "{run}", "r", "{agent}", "helper", "{tool}", "f", "{checkpoint}",
		"000000000001", "{call}", "c", "*", "app.js")
	read := 0
	for _, r := range allRoutes() {
		if r.open {
			continue
		}
		o.asked = nil
		res, body := do(t, r.method, s.URL+fill.Replace(r.path), bodies[r.body], headerUser, "bob%40home",
			"Content-Type", typeJSON)
		switch want := "read bob@home " +
			strings.Trim(map[bool]string{true: "t1"}[strings.Contains(r.path, "{thread}")], " "); {
		case r.method == "GET" && (strings.HasPrefix(r.path, "/threads") || r.path == "/questions"):
			read++
			if res.StatusCode >= 400 || !slices.Equal(o.asked, []string{want}) {
				t.Errorf("%s %s: %d %s, asked %q", r.method, r.path, res.StatusCode, body, o.asked)
			}
		case res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "only be read") || o.asked != nil:
			t.Errorf("%s %s: %d %s, asked %q", r.method, r.path, res.StatusCode, body, o.asked)
		}
	}
	if read < 9 {
		t.Errorf("%d routes take the header", read)
	}
	for _, user := range []string{"%zz", "%00", strings.Repeat("u", 257), ""} {
		if res, body := do(t, "GET", s.URL+"/threads", "", headerUser, user); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", url.QueryEscape(user), res.StatusCode, body)
		}
	}
}

// TestThreadsOfAll: the list of all users' threads has its own parameter.
func TestThreadsOfAll(t *testing.T) {
	o := &operated{}
	s := serve(t, eventful(), func(c *Config) { c.Others = o })
	if res, body := do(t, "GET", s.URL+"/threads?user=*&limit=3", ""); res.StatusCode != http.StatusOK ||
		!strings.Contains(body, `"id":"t9","user":"bob"`) || !slices.Equal(o.asked, []string{"list"}) {
		t.Errorf("%d %s, asked %q", res.StatusCode, body, o.asked)
	}
	if res, body := do(t, "GET", s.URL+"/threads?user=bob", ""); res.StatusCode != http.StatusBadRequest ||
		!strings.Contains(body, headerUser) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// TestKill: the answer is there before the process is asked to die, and only where it can be.
func TestKill(t *testing.T) {
	o := &operated{kill: true, killed: make(chan struct{}, 2)}
	s := serve(t, &fake{}, func(c *Config) { c.Demo = o })
	res, body := do(t, "POST", s.URL+"/demo/kill", "")
	if res.StatusCode != http.StatusAccepted || body != `{"process":"p_1"}` {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	<-o.killed
	valid(t, schemas(t)("Killed"), body)
	for name, change := range map[string]func(*Config){"no demo": nil,
		"not now": func(c *Config) { c.Demo = &operated{} }} {
		s := serve(t, &fake{}, change)
		if res, body := do(t, "POST", s.URL+"/demo/kill", ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	// A page of elsewhere cannot.
	if res, _ := do(t, "POST", s.URL+"/demo/kill", "", "Origin", "https://evil.example", "Content-Type",
		typeJSON); res.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %d", res.StatusCode)
	}
	s.Close() // waits for the handlers
	if len(o.killed) != 0 {
		t.Error("a page of another origin has killed it")
	}
}
