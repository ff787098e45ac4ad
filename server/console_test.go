package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// readAs sends a GET of an operator who reads as another user.
func readAs(t *testing.T, key, user, url string) string {
	t.Helper()
	req := asked(t, key, "GET", url, "")
	req.Header.Set("Holdfast-User", user)
	res := must(http.DefaultClient.Do(req))(t)
	defer res.Body.Close()
	return fmt.Sprint(res.StatusCode, " ", string(must(io.ReadAll(res.Body))(t)))
}

// TestOperatorsRead: operators read the threads of their tenant's users, and nothing else of
// them, and the log says so; nobody else does.
func TestOperatorsRead(t *testing.T) {
	c := callers{
		"operator": role("ops", access.RoleTenantOperator),
		"alice":    {Tenant: "acme", User: "alice"},
		"bob":      {Tenant: "acme", User: "bob@home"},
		"eve":      {Tenant: "evil", User: "eve"},
		"read":     role("carl", access.RoleRead),
	}
	h, s, log := keyed(t, c, nil)
	for i, name := range []string{"alice", "bob", "eve", "bob", "alice"} {
		all(t, s.Run(t.Context(), c[name], server.Input{Thread: fmt.Sprint(name, i), Text: "hi"}))
	}
	for _, tt := range []struct{ key, user, path, want string }{
		{"operator", "bob%40home", "/threads/bob1/messages", `200 {"messages":[{`},
		{"operator", "bob%40home", "/threads/bob1", "200 "},
		{"operator", "bob%40home", "/threads/bob1/checkpoints", "200 "},
		{"operator", "bob%40home", "/threads/bob1/stream", "200 "},
		{"operator", "alice", "/threads/bob1", "404 "},
		{"operator", "eve", "/threads/eve2", "404 "},
		{"alice", "bob%40home", "/threads/bob1", "403 "},
		{"read", "bob%40home", "/threads/bob1", "403 "},
		{"nobody", "bob%40home", "/threads/bob1", "401 "},
	} {
		if got := readAs(t, tt.key, tt.user, h.URL+tt.path); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s reads %s of %s: %s", tt.key, tt.path, tt.user, got)
		}
	}
	for _, tt := range []struct{ key, query, want string }{
		{"operator", "", "alice4:alice bob3:bob@home bob1:bob@home alice0:alice"},
		{"operator", "&limit=1", "alice4:alice"}, {"alice", "", "403"}, {"eve", "", "403"},
	} {
		code, body := call(t, tt.key, "GET", h.URL+"/threads?user=*"+tt.query, "")
		if got := strings.TrimSpace(threadsIn(t, code, body)); got != tt.want {
			t.Errorf("%s lists %s, want %s", tt.key, got, tt.want)
		}
	}
	var second struct{ Threads []threads.Info }
	_, body := call(t, "operator", "GET", h.URL+"/threads?user=*&limit=2", "")
	if err := json.Unmarshal([]byte(body), &second); err != nil || len(second.Threads) != 2 {
		t.Fatalf("%s: %v", body, err)
	}
	code, body := call(t, "operator", "GET",
		h.URL+"/threads?user=*&before="+second.Threads[1].UpdatedAt.Format(time.RFC3339Nano), "")
	if got := threadsIn(t, code, body); got != "bob1:bob@home alice0:alice " {
		t.Errorf("the rest is %s", got)
	}
	if code, body := call(t, "alice", "GET", h.URL+"/threads", ""); code != http.StatusOK ||
		strings.Contains(body, `"user"`) {
		t.Errorf("one's own list: %d %s", code, body)
	}
	got := strings.Join(log.audit(), "\n")
	for _, want := range []string{
		"who=acme/ops action=read thread=bob1 result=ok user=bob@home",
		"who=acme/alice action=read thread=bob1 result=forbidden user=bob@home",
		"who=acme/ops action=list result=ok user=*", "who=evil/eve action=list result=forbidden user=*",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s:\n%s", want, got)
		}
	}
}

// threadsIn returns the threads of a list with their users, or the status.
func threadsIn(t *testing.T, code int, body string) string {
	t.Helper()
	if code != http.StatusOK {
		return fmt.Sprint(code)
	}
	var list struct{ Threads []threads.Info }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, info := range list.Threads {
		text += info.ID + ":" + info.User + " "
	}
	return text
}

// TestTenantOperator: what concerns the whole server is for its operators, not for those of a
// tenant; the refusal says what is missing, and the log has it.
func TestTenantOperator(t *testing.T) {
	c := callers{
		"tenant": role("ops", access.RoleTenantOperator, access.RoleUser),
		"server": role("root", access.RoleServerOperator),
	}
	h, _, log := keyed(t, c, func(c *server.Config) {
		c.Settings = []server.Setting{{Name: "x"}}
		c.Agents = append(c.Agents, holdfast.Agent{Name: "tools", Model: hello, Tools: byHand()})
	})
	for _, tt := range []struct {
		method, path, body, attempt string
		may                         int
	}{
		{"GET", "/overview", "", "overview", http.StatusOK},
		{"GET", "/settings", "", "read_settings", http.StatusOK},
		{"POST", "/agents/tools/tools/add/call", `{"arguments":{"A":2,"B":3}}`, "call_tool", http.StatusOK},
		// There is nothing to copy here.
		{"POST", "/maintenance/backup", `{"dir":"/x"}`, "backup", http.StatusNotFound},
	} {
		code, body := call(t, "tenant", tt.method, h.URL+tt.path, tt.body)
		if code != http.StatusForbidden || !strings.Contains(body, `"details":{"action":"operate_server"}`) {
			t.Errorf("%s: %d %s", tt.path, code, body)
		}
		if line := "who=acme/ops action=" + tt.attempt + " result=forbidden"; !strings.Contains(log.String(), line) {
			t.Errorf("%s: the log lacks %s", tt.path, line)
		}
		if code, body := call(t, "server", tt.method, h.URL+tt.path, tt.body); code != tt.may {
			t.Errorf("%s for the server's operator: %d %s", tt.path, code, body)
		}
	}
	for key, want := range map[string]string{
		"tenant": `"roles":["user","tenant_operator"],"tenantOperator":true,"serverOperator":false`,
		"server": `"roles":["server_operator"],"tenantOperator":true,"serverOperator":true`,
	} {
		if _, body := call(t, key, "GET", h.URL+"/ui/config.json", ""); !strings.Contains(body, want) {
			t.Errorf("the page of %s is told %s", key, body)
		}
	}
}

// TestOwnRuleForOperators: a program that decides for itself is asked about operators too, also
// without keys.
func TestOwnRuleForOperators(t *testing.T) {
	no := func(_ context.Context, _ holdfast.Principal, action access.Action, _ string) error {
		if action == access.OperateTenant || action == access.OperateServer {
			return errors.New("not on Sundays")
		}
		return nil
	}
	for name, authenticate := range map[string]func(*http.Request) (holdfast.Principal,
		error){"keys": callers{localToken: role("ops", access.RoleServerOperator)}.authenticate,
		"none": nil} {
		h, _, log := keyed(t, nil, func(c *server.Config) {
			c.Authenticate, c.Authorize, c.OperatorToken = authenticate, no, localToken
		})
		for _, path := range []string{"/overview", "/settings", "/threads?user=*"} {
			if code, body := call(t, localToken, "GET", h.URL+path, ""); code != http.StatusForbidden ||
				strings.Contains(body, "Sundays") {
				t.Errorf("%s: %s: %d %s", name, path, code, body)
			}
		}
		if got := readAs(t, localToken, "bob", h.URL+"/threads"); !strings.HasPrefix(got, "403") ||
			!strings.Contains(log.String(), "user=bob") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// localToken is what operators of a server without keys show.
const localToken = "the-token-of-this-machine"

// TestOperatorWithoutKeys: on a server for its own machine, the person who is there and shows
// its token operates it; on all others without keys nobody does.
func TestOperatorWithoutKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*server.Config)
		code   int
	}{
		"this machine":   {func(*server.Config) {}, http.StatusOK},
		"behind a proxy": {func(c *server.Config) { c.BehindProxy = true }, http.StatusNotFound},
		"anonymous":      {func(c *server.Config) { c.AllowAnonymous = true }, http.StatusNotFound},
	} {
		h, s, _ := keyed(t, nil, func(c *server.Config) {
			c.Authenticate, c.OperatorToken = nil, localToken
			tt.change(c)
		})
		for _, path := range []string{"/overview", "/threads?user=*"} {
			if code, body := call(t, localToken, "GET", h.URL+path, ""); code != tt.code {
				t.Errorf("%s: %s: %d %s", name, path, code, body)
			}
		}
		if code, body := call(t, localToken, "GET", h.URL+"/ui/config.json", ""); strings.Contains(body,
			`"tenantOperator":true,"serverOperator":true`) != (tt.code == http.StatusOK) {
			t.Errorf("%s: the page is told %d %s", name, code, body)
		}
		// From elsewhere, as far as the connection says.
		for _, remote := range []string{"192.0.2.1:1234", "", "[2001:db8::1]:80"} {
			r := httptest.NewRequest("GET", "/overview", nil)
			r.Host, r.RemoteAddr = "localhost", remote
			r.Header.Set("Authorization", "Bearer "+localToken)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, h.Listener.Addr()))
			w := httptest.NewRecorder()
			if s.Handler().ServeHTTP(w, r); w.Code != http.StatusNotFound {
				t.Errorf("%s, from %q: %d", name, remote, w.Code)
			}
		}
	}
}

// TestTokenOfThisMachine: callers who only reach a server without keys may chat, but what needs
// an operator wants its token, also from pages of other local ports.
func TestTokenOfThisMachine(t *testing.T) {
	h, _, log := keyed(t, nil, func(c *server.Config) { c.Authenticate, c.OperatorToken = nil, localToken })
	for i, shown := range []string{"", "x", localToken + "x", localToken[1:]} {
		for _, request := range []string{
			"GET /overview", "GET /settings", "GET /threads?user=*", "POST /agents/plain/tools/add/call",
			"POST /maintenance/backup", "POST /demo/kill",
		} {
			method, path, _ := strings.Cut(request, " ")
			sent := map[string]string{"POST": "{}"}[method]
			code, body := call(t, shown, method, h.URL+path, sent)
			if code != http.StatusNotFound {
				t.Errorf("%s with %q: %d %s", request, shown, code, body)
			}
		}
		if got := readAs(t, shown, "bob", h.URL+"/threads"); !strings.HasPrefix(got, "404") {
			t.Errorf("another user's threads with %q: %s", shown, got)
		}
		_, body := call(t, shown, "GET", h.URL+"/ui/config.json", "")
		if !strings.Contains(body, `"tenantOperator":false,"serverOperator":false`) ||
			!strings.Contains(body, `"identified":true`) {
			t.Errorf("the page with %q is told %s", shown, body)
		}
		if code, body := call(t, shown, "POST", h.URL+"/runs",
			say("t", fmt.Sprint("r", i), "hi")); code != http.StatusOK {
			t.Errorf("chatting with %q: %d %s", shown, code, body)
		}
	}
	if strings.Contains(log.String(), localToken) {
		t.Error("the token is in the log")
	}
}

// TestOperatorToken: what cannot stand in an address is refused, and so is what can be guessed.
func TestOperatorToken(t *testing.T) {
	for _, token := range []string{"short", "with a space in it", "with/a/slash/in/it", strings.Repeat("x", 513)} {
		c := config(t)
		c.OperatorToken = token
		if _, err := server.New(c); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// byHand are tools for calls by hand.
func byHand() []holdfast.Tool {
	return []holdfast.Tool{
		holdfast.NewTool("tell", "tells of its call", func(ctx context.Context, _ struct{}) (string, error) {
			call := holdfast.CallFrom(ctx)
			err := errors.Join(holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				return nil,
					errors.New("nobody applies this")
			}), holdfast.Notify(ctx, "test.note", 1))
			at := holdfast.IterationFrom(ctx)
			return fmt.Sprint(call.Key, " ", call.Principal.User, " ", call.Principal.Rights == nil, " ",
				call.Thread == "", " ", call.State == nil, " ", at.Agent), err
		}),
		holdfast.NewTool("add", "adds", func(_ context.Context, in struct{ A, B int }) (int, error) {
			return in.A + in.B, nil
		}),
		holdfast.NewTool("fail", "fails", func(context.Context, struct{}) (string, error) {
			return "",
				errors.New("the disk is full")
		}),
		holdfast.NewTool("missing", "fails with a code", func(context.Context, struct{}) (string, error) {
			return "", holdfast.Errorf(codes.NotFound, "There is no such order.")
		}),
		holdfast.NewTool("burn", "panics", func(context.Context, struct{}) (string, error) {
			panic("secret of the tool")
		}),
		holdfast.NewTool("keep", "keeps", func(ctx context.Context, _ struct{}) (string, error) {
			return "kept", holdfast.Keep(ctx, json.RawMessage("1"))
		}),
		holdfast.NewTool("ask", "asks", func(context.Context, struct{}) (string, error) {
			return "",
				&holdfast.Interrupt{Message: "Which one?"}
		}),
		holdfast.NewTool("long", "says much", func(context.Context, struct{}) (string, error) {
			return strings.Repeat("x", 1000), nil
		}),
		holdfast.NewTool("slow", "waits", func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, holdfast.WithTimeout(time.Millisecond)),
		contract.New[struct{}]("later", "is finished from outside", holdfast.Outside{}),
	}
}

// TestToolByHand: one tool runs as an agent's call would, without an agent; what cannot run is
// refused before anything happens, and the log has both.
func TestToolByHand(t *testing.T) {
	c := callers{
		"operator": role("ops", access.RoleServerOperator),
		"alice":    {Tenant: "acme", User: "alice"},
		"plain only": with("ops", access.Rights{Roles: []access.Role{access.RoleServerOperator},
			Agents: []string{"plain"}}),
	}
	refuse := holdfast.Middleware{Name: "test.refuse", Tool: func(holdfast.ToolHandler) holdfast.ToolHandler {
		return func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
			return holdfast.ToolResult{}, errors.New("never")
		}
	}}
	h, _, log := keyed(t, c, func(c *server.Config) {
		c.MaxToolResult = 500
		c.Agents = append(c.Agents, holdfast.Agent{Name: "tools", Model: hello, Tools: byHand(),
			Middleware: []holdfast.Middleware{refuse}})
	})
	for _, tt := range []struct{ key, tool, body, want string }{
		{"operator", "tools/tools/tell", `{"idempotencyKey":"k7"}`,
			`200 {"result":"k7 ops true true true tools","idempotencyKey":"k7",`},
		{"operator", "tools/tools/add", `{"arguments":{"A":2,"B":3}}`, `200 {"result":"5","idempotencyKey":"call`},
		{"operator", "tools/tools/add", `{"arguments":{"A":"two"}}`, "400 "},
		{"operator", "tools/tools/add", `{"arguments":[2]}`,
			`400 {"error":{"code":"invalid_input","message":"The arguments are not what add takes: [2] is an array, ` +
				`but it must be an object.",`},
		{"operator", "tools/tools/fail", "", `200 {"error":"the disk is full",`},
		{"operator", "tools/tools/missing", "", `200 {"error":"There is no such order.`},
		{"operator", "tools/tools/burn", "", `200 {"error":"`},
		{"operator", "tools/tools/keep", "", `200 {"error":"`},
		{"operator", "tools/tools/ask", "", `200 {"error":"The tool asks a person, which needs a thread: Which one?",`},
		{"operator", "tools/tools/long", "", `200 {"result":"xxx`},
		{"operator", "tools/tools/slow", "", `200 {"error":"`},
		{"operator", "tools/tools/later", "", "400 "},
		{"operator", "tools/tools/nosuch", "", `404 {"error":{"code":"not_found"`},
		{"operator", "nosuch/tools/add", "", `404 {"error":{"code":"agent_not_found"`},
		{"alice", "tools/tools/add", `{"arguments":{"A":2,"B":3}}`, "403 "},
		{"plain only", "tools/tools/add", `{"arguments":{"A":2,"B":3}}`, "403 "},
	} {
		code, body := call(t, tt.key, "POST", h.URL+"/agents/"+tt.tool+"/call", tt.body)
		if got := fmt.Sprint(code, " ", body); !strings.HasPrefix(got, tt.want) || len(body) > 1500 ||
			strings.Contains(body, "secret of the tool") {
			t.Errorf("%s calls %s with %s: %s", tt.key, tt.tool, tt.body, got)
		}
	}
	got := strings.Join(log.audit(), "\n")
	for _, want := range []string{
		"who=acme/ops action=call_tool result=ok agent=tools tool=tell key=k7",
		"who=acme/ops action=call_tool result=invalid_input agent=tools tool=add key=call",
		"who=acme/ops action=call_tool result=not_found agent=tools tool=nosuch",
		"who=acme/alice action=call_tool result=forbidden",
		"who=acme/ops action=call_tool result=forbidden agent=tools tool=add",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s:\n%s", want, got)
		}
	}
}

// TestOverview: the figures of the server are those of its runs.
func TestOverview(t *testing.T) {
	c := callers{"operator": role("ops", access.RoleServerOperator), "alice": {Tenant: "acme", User: "alice"}}
	h, s, log := keyed(t, c, func(c *server.Config) { c.Version = "v1" })
	all(t, s.Run(t.Context(), c["alice"], server.Input{Thread: "t1", Text: "hi"}))
	all(t, s.Run(t.Context(), c["alice"], server.Input{Thread: "t2", Agent: "ask", Text: "hi"}))
	var code int
	var body string
	wait.Until(t, "a run to be counted", func() bool { // a run is counted after its last event
		code, body = call(t, "operator", "GET", h.URL+"/overview", "")
		return strings.Contains(body, `"running":0,`)
	})
	var o struct {
		Process, Version, Store, Durability string
		StartedAt, Now                      time.Time
		Processes                           []string
		Runs                                struct{ Running, Started, Finished, Waiting int }
		Series                              struct{ Points []struct{ Started int } }
	}
	if err := json.Unmarshal([]byte(body), &o); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	if o.Version != "v1" || o.Store != "memory" || o.Durability != "none" || len(o.Processes) != 1 ||
		o.Processes[0] != o.Process || o.StartedAt.After(o.Now) {
		t.Errorf("%s", body)
	}
	if o.Runs.Running != 0 || o.Runs.Started != 2 || o.Runs.Finished != 1 || o.Runs.Waiting != 1 ||
		len(o.Series.Points) == 0 {
		t.Errorf("%s", body)
	}
	if code, _ := call(t, "alice", "GET", h.URL+"/overview", ""); code != http.StatusForbidden {
		t.Errorf("a user: %d", code)
	}
	if got := log.audit(); len(got) != 1 || got[0] != "who=acme/alice action=overview result=forbidden" {
		t.Errorf("the log has %q", got)
	}
}

// TestSettingsRoute: a program says what it was started with, and its file with it.
func TestSettingsRoute(t *testing.T) {
	c := callers{"operator": role("ops", access.RoleServerOperator), "alice": {Tenant: "acme", User: "alice"}}
	h, _, log := keyed(t, c, func(c *server.Config) {
		c.Settings = []server.Setting{{Name: "--addr", Value: "localhost:1", Source: "flag", Text: "the address"}}
		c.Limits = map[string]server.Limits{"ask": {MaxIterations: 3, ToolTimeout: time.Minute}}
		c.Quotas = server.Quotas{
			PerUser: server.Quota{Runs: 2},
			Tenants: map[string]server.TenantQuota{"evil": {PerUser: server.Quota{Runs: 1}}},
		}
	})
	code, body := call(t, "operator", "GET", h.URL+"/settings", "")
	const want = `{"settings":[{"name":"--addr","value":"localhost:1","source":"flag","text":"the address"},` +
		`{"name":"limits.perUser.runs","value":"2","source":"file","text":"bounds one user"},` +
		`{"name":"agents.ask.limits.maxIterations","value":"3","source":"file","text":"bounds the agent ask"},` +
		`{"name":"agents.ask.limits.toolTimeout","value":"1m0s","source":"file","text":"bounds the agent ask"}]}`
	if code != http.StatusOK || strings.TrimSpace(body) != want {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := call(t, "alice", "GET", h.URL+"/settings", ""); code != http.StatusForbidden {
		t.Errorf("a user: %d", code)
	}
	if got := log.audit(); len(got) != 2 || got[0] != "who=acme/ops action=read_settings result=ok" ||
		got[1] != "who=acme/alice action=read_settings result=forbidden" {
		t.Errorf("the log has %q", got)
	}
}

// TestKillOnlyTheDemo: the route is there while all models are scripted, and only for this
// machine.
func TestKillOnlyTheDemo(t *testing.T) {
	loaded := must(server.Load("", server.Parts{DefaultModel: "demo"}))(t)
	defer loaded.Close()
	for name, tt := range map[string]struct {
		change func(*server.Config)
		killed bool
	}{
		"the demo": {func(*server.Config) {}, true},
		"another model": {func(c *server.Config) {
			c.Agents = append(c.Agents, holdfast.Agent{Name: "b", Model: hello})
		},
			false},
		"keys":           {func(c *server.Config) { c.Authenticate = callers{}.authenticate }, false},
		"anonymous":      {func(c *server.Config) { c.AllowAnonymous = true }, false},
		"behind a proxy": {func(c *server.Config) { c.BehindProxy = true }, false},
		"nobody kills":   {func(c *server.Config) { c.Kill = nil }, false},
	} {
		killed := make(chan struct{}, 1)
		h, s, _ := keyed(t, nil, func(c *server.Config) {
			c.Authenticate, c.Agents, c.Kill = nil, loaded.Agents, func() { killed <- struct{}{} }
			c.OperatorToken = localToken
			tt.change(c)
		})
		if code, _ := call(t, "", "POST", h.URL+"/demo/kill", ""); code != http.StatusNotFound || len(killed) != 0 {
			t.Errorf("%s, without the token: %d", name, code)
		}
		code, body := call(t, localToken, "POST", h.URL+"/demo/kill", "")
		if (code == http.StatusAccepted) != tt.killed ||
			!tt.killed && (code != http.StatusNotFound || len(killed) != 0) {
			t.Errorf("%s: %d %s, killed: %d", name, code, body, len(killed))
		}
		if tt.killed {
			<-killed
		}
		if _, body := call(t, localToken, "GET", h.URL+"/ui/config.json", ""); strings.Contains(body,
			`"kill":true`) != tt.killed {
			t.Errorf("%s: the page is told %s", name, body)
		}
		if name == "the demo" { // until an agent has another model
			unused := must(s.Reload([]holdfast.Agent{{Name: "b", Model: hello}}, nil, server.Quotas{}))(t)
			<-unused
			if code, _ := call(t, localToken, "POST", h.URL+"/demo/kill", ""); code != http.StatusNotFound {
				t.Errorf("after a reload: %d", code)
			}
		}
	}
}
