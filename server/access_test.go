package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// asking waits for a person at the first iteration of a run.
var asking = holdfast.Middleware{
	Name: "test.ask",
	BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
		if it.Answer != nil {
			return nil
		}
		return &holdfast.Interrupt{Reason: "test.ask", Message: "May I?"}
	},
}

// logs is a log that a test reads.
type logs struct{ process.Log }

// audit returns the lines about what was deleted, taken back or copied, without times.
func (l *logs) audit() (lines []string) {
	for _, line := range l.Lines() {
		if _, rest, ok := strings.Cut(line, "msg=audit "); ok {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	return lines
}

// callers are the principals of a test, by key.
type callers map[string]holdfast.Principal

func (c callers) authenticate(r *http.Request) (holdfast.Principal, error) {
	_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	who, ok := c[key]
	if !ok {
		return who, holdfast.Errorf(codes.Unauthenticated, "Who are you?").WithHint("Send a key.")
	}
	return who, nil
}

func with(user string, r access.Rights) holdfast.Principal {
	return holdfast.Principal{Tenant: "acme", User: user, Rights: &r}
}

func role(user string, roles ...access.Role) holdfast.Principal {
	return with(user, access.Rights{Roles: roles})
}

// keyed starts a server whose callers have keys, with the agents plain, ask (whose
// questions its user answers) and gate (whose questions approvers answer).
func keyed(t *testing.T, c callers, change func(*server.Config)) (*httptest.Server, *server.Server, *logs) {
	t.Helper()
	log := &logs{}
	cfg := config(t)
	cfg.Log, cfg.Authenticate = slog.New(slog.NewTextHandler(log, nil)), c.authenticate
	cfg.Agents = []holdfast.Agent{
		{Name: "plain", Model: hello},
		{Name: "ask", Model: hello, Middleware: []holdfast.Middleware{asking}},
		{Name: "gate", Model: hello, Middleware: []holdfast.Middleware{asking}, Approvals: access.RoleApprover},
	}
	if change != nil {
		change(&cfg)
	}
	s := must(server.New(cfg))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h, s, log
}

// call sends a request with a key, and returns the status and the body.
func call(t *testing.T, key, method, url, body string) (int, string) {
	t.Helper()
	res := must(http.DefaultClient.Do(asked(t, key, method, url, body)))(t)
	defer res.Body.Close()
	return res.StatusCode, string(must(io.ReadAll(res.Body))(t))
}

func asked(t *testing.T, key, method, url, body string) *http.Request {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream;q=0.5")
	return req
}

func say(thread, run, text string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":[{"id":"m-%s","role":"user","content":%q}]}`, thread, run,
		run, text)
}

// TestRoles calls all that a role may do and all that it may not, over HTTP, on a thread
// of the same user.
func TestRoles(t *testing.T) {
	const all, read, user, approver = "all", "read", "user", "approver"
	c := callers{all: {Tenant: "acme", User: "alice"}, "nothing": role("alice")}
	for _, r := range access.Roles() {
		c[string(r)] = role("alice", r)
	}
	readers := []string{all, read, user, approver}
	users := []string{all, user}
	deleters := []string{all, user, string(access.RoleTenantOperator), string(access.RoleServerOperator)}
	h, s, _ := keyed(t, c, nil)
	alice := c[all]
	for i, tt := range []struct {
		method, path, body string
		may                []string
	}{
		{"GET", "/threads", "", readers},
		{"GET", "/threads/T", "", readers},
		{"GET", "/threads/T/messages", "", readers},
		{"GET", "/threads/T/state", "", readers},
		{"GET", "/threads/T/runs", "", readers},
		{"GET", "/threads/T/children", "", readers},
		{"GET", "/threads/T/checkpoints", "", readers},
		{"GET", "/threads/T/checkpoints/000000000001", "", readers},
		{"GET", "/threads/T/stream", "", readers},
		{"GET", "/threads/T/runs/first/events", "", readers},
		{"POST", "/runs", `{"threadId":"T","runId":"again","messages":[]}`, readers}, // shows the thread
		{"POST", "/runs", `{"threadId":"T","runId":"first","messages":[]}`, readers}, // shows the run again
		{"POST", "/runs", say("T", "second", "hi"), users},
		{"POST", "/agents/ask/runs", say("T", "third", "hi"), users},
		{"POST", "/threads/T/runs/first/cancel", "", users},
		{"POST", "/threads/T/checkpoints", "{}", users},
		{"POST", "/threads/T/fork", "{}", users},
		{"POST", "/threads/T/rewind", `{"checkpointId":"000000000001"}`, users},
		{"POST", "/threads/T/prune", "{}", deleters},
		{"POST", "/maintenance/delete-older-than", `{"olderThan":"1000h"}`, deleters},
		{"POST", "/maintenance/delete-inactive", `{"threshold":"1000h"}`, deleters},
		{"DELETE", "/threads/T", "", deleters},
	} {
		for key := range c {
			id := fmt.Sprintf("t%d-%s", i, key)
			for range s.Run(t.Context(), alice, server.Input{Thread: id, Run: "first", Text: "hi"}) {
			}
			fill := strings.NewReplacer("/T", "/"+id, `"T"`, `"`+id+`"`)
			code, body := call(t, key, tt.method, h.URL+fill.Replace(tt.path), fill.Replace(tt.body))
			refused := code == http.StatusForbidden && strings.Contains(body, `"code":"forbidden"`)
			if may := slices.Contains(tt.may, key); may && code >= 300 || !may && !refused {
				t.Errorf("%s: %s %s %s: %d %s", key, tt.method, tt.path, tt.body, code, body)
			}
			if refused && len(must(s.Messages(t.Context(), alice, id))(t)) != 2 {
				t.Errorf("%s: %s %s was refused and has changed the thread", key, tt.method, tt.path)
			}
		}
	}
}

// waits begins a run of an agent that asks, and returns the answer that lets it go on.
func waits(t *testing.T, s *server.Server, who holdfast.Principal, agent, thread string) (answer string) {
	t.Helper()
	for range s.Run(t.Context(), who, server.Input{Thread: thread, Agent: agent, Text: "hi"}) {
	}
	info := must(s.Thread(t.Context(), who, thread))(t)
	if info.Status != threads.StatusInterrupted || len(info.Interrupts) != 1 {
		t.Fatalf("%+v", info)
	}
	return fmt.Sprintf(`{"threadId":%q,"runId":"answer","messages":[],"resume":[{"interruptId":%q,`+
		`"status":"resolved","payload":{}}]}`, thread, info.Interrupts[0].ID)
}

// TestApprovals: a user answers the questions of their threads, unless the agent leaves
// them to approvers.
func TestApprovals(t *testing.T) {
	c := callers{
		"all": {
			Tenant: "acme",
			User:   "alice",
		},
		"user":     role("alice", access.RoleUser),
		"read":     role("alice", access.RoleRead),
		"approver": role("alice", access.RoleApprover),
		"both":     role("alice", access.RoleUser, access.RoleApprover),
		"bob":      role("bob", access.RoleUser, access.RoleApprover),
	}
	h, s, _ := keyed(t, c, nil)
	for agent, may := range map[string][]string{"ask": {"all", "user", "approver", "both"},
		"gate": {"approver", "both"}} {
		for key := range c {
			answer := waits(t, s, c["all"], agent, agent+"-"+key)
			want := http.StatusForbidden
			switch {
			case slices.Contains(may, key):
				want = http.StatusOK
			case key == "bob":
				want = http.StatusNotFound // the thread is another user's
			}
			code, body := call(t, key, "POST", h.URL+"/runs", answer)
			status := must(s.Thread(t.Context(), c["all"], agent+"-"+key))(t).Status
			if code != want || (status == threads.StatusIdle) != (want == http.StatusOK) {
				t.Errorf("%s answers %s: %d %s, and the thread is %s", key, agent, code, body, status)
			}
			if want == http.StatusForbidden && key == "all" &&
				!strings.Contains(body, `"action":"approve","agent":"gate"`) {
				t.Error(body)
			}
		}
	}
}

// TestAgentsOfAKey: a key that is for some agents starts, answers and is shown no others,
// whichever way it names them.
func TestAgentsOfAKey(t *testing.T) {
	c := callers{
		"some": with("alice", access.Rights{Roles: []access.Role{access.RoleUser}, Agents: []string{"ask"}}),
		"all":  {Tenant: "acme", User: "alice"},
	}
	h, s, _ := keyed(t, c, nil)
	if code, body := call(t, "some", "GET", h.URL+"/agents", ""); code != 200 ||
		strings.Contains(body, `"name":"plain"`) || !strings.Contains(body, `"name":"ask"`) {
		t.Errorf("%d %s", code, body)
	}
	for path, want := range map[string]int{
		"/agents/ask/runs": 200, "/agents/plain/runs": 403, "/runs": 403, "/agents/nobody/runs": 404,
	} {
		if code, body := call(t, "some", "POST", h.URL+path, say("t"+path, "r", "hi")); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for path, want := range map[string]int{"/agents/ask/capabilities": 200, "/agents/plain/capabilities": 404} {
		if code, body := call(t, "some", "GET", h.URL+path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	answer := waits(t, s, c["all"], "gate", "waiting")
	if code, body := call(t, "some", "POST", h.URL+"/runs", answer); code != 403 {
		t.Errorf("the answer to another agent: %d %s", code, body)
	}
	// The methods of the server ask as well.
	for _, err := range s.Run(t.Context(), c["some"], server.Input{Thread: "x", Text: "hi"}) {
		if holdfast.AsError(err).Code != codes.Forbidden {
			t.Errorf("%v", err)
		}
	}
	if _, err := s.Delete(t.Context(), role("alice", access.RoleRead), "waiting", "", false); err == nil ||
		holdfast.AsError(err).Code != codes.Forbidden {
		t.Errorf("%v", err)
	}
}

// TestAuthorize: a program's own function decides instead of the roles; it is asked with
// the actions of package access, and what it says without a code stays inside.
func TestAuthorize(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	h, _, _ := keyed(t, callers{"k": role("alice", access.RoleRead),
		"operator": role("ops", access.RoleServerOperator)}, func(c *server.Config) {
		c.Authorize = func(_ context.Context, who holdfast.Principal, action access.Action, agent string) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, who.User+" "+string(action)+" "+agent)
			switch action {
			case access.Cancel:
				return errors.New("the secret reason")
			case access.Delete:
				return holdfast.Errorf("too_early", "Not before noon.")
			}
			return nil
		}
	})
	for _, tt := range []struct {
		key, method, path, body string
		code                    int
		want                    string
	}{
		{"k", "POST", "/runs", say("t", "r", "hi"), 200, "alice run plain"},
		{"k", "GET", "/threads/t", "", 200, "alice read "},
		{"k", "POST", "/threads/t/runs/r/cancel", "", 403, "alice cancel "},
		{"k", "DELETE", "/threads/t", "", 500, "alice delete "},
		{"k", "POST", "/threads/t/fork", "{}", 201, "alice change "},
		{"k", "GET", "/agents/gate/capabilities", "", 200, "alice read gate"},
		{"operator", "POST", "/maintenance/backup", `{"dir":"/x"}`, 404, "ops operate_server "},
	} {
		seen = nil
		code, body := call(t, tt.key, tt.method, h.URL+tt.path, tt.body)
		if code != tt.code || !slices.Contains(seen, tt.want) || strings.Contains(body, "secret") {
			t.Errorf("%s %s: %d %s, asked %q", tt.method, tt.path, code, body, seen)
		}
	}
	if code, body := call(t, "k", "POST", h.URL+"/maintenance/backup", `{"dir":"/x"}`); code != http.StatusForbidden {
		t.Errorf("a backup with the program's leave, but without the role: %d %s", code, body)
	}
}

// TestOperators: an operator of the tenant deletes and cleans up threads of all users of the tenant, and
// of no other, and the log says who did what.
func TestOperators(t *testing.T) {
	c := callers{
		"operator": role("ops", access.RoleTenantOperator),
		"alice":    {Tenant: "acme", User: "alice"},
		"bob":      {Tenant: "acme", User: "bob"},
		"eve":      {Tenant: "evil", User: "eve"},
		"ops":      role("ops", access.RoleUser),
	}
	start, later := time.Now(), atomic.Int64{}
	h, s, log := keyed(t, c, func(c *server.Config) {
		c.Now = func() time.Time {
			return start.Add(time.Duration(later.Load()))
		}
	})
	for _, name := range []string{"alice", "bob", "eve"} {
		for _, id := range []string{"1", "2"} {
			for range s.Run(t.Context(), c[name], server.Input{Thread: name + id, Text: "hi"}) {
			}
		}
	}
	for _, tt := range []struct{ key, method, path, body, want string }{
		{"ops", "DELETE", "/threads/alice1", "", "404"},
		{"operator", "DELETE", "/threads/eve1", "", "404"},
		{"operator", "GET", "/threads/alice1/messages", "", "403"},
		{"operator", "POST", "/threads/alice1/prune", `{"keep":1}`, "200"},
		{"operator", "DELETE", "/threads/alice1", "", `200 {"deleted":1}`},
		{"alice", "DELETE", "/threads/bob1", "", "404"},
		{"alice", "POST", "/maintenance/delete-inactive", `{"threshold":"1h","dryRun":true}`,
			`200 {"dryRun":true,"threads":1,`},
		{"operator", "POST", "/maintenance/delete-inactive", `{"threshold":"1h","dryRun":true}`,
			`200 {"dryRun":true,"threads":3,`},
		{"operator", "POST", "/maintenance/delete-inactive", `{"threshold":"1h"}`, `200 {"dryRun":false,"threads":3,`},
		{"eve", "GET", "/threads/eve1", "", "200"},
		{"eve", "POST", "/maintenance/delete-older-than", `{"olderThan":"1h"}`, "200"},
	} {
		later.Add(int64(2 * time.Hour))
		code, body := call(t, tt.key, tt.method, h.URL+tt.path, tt.body)
		if got := fmt.Sprint(code, " ", body); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s %s: %s, want %s", tt.key, tt.method, tt.path, got, tt.want)
		}
	}
	want := []string{
		"who=acme/ops action=delete thread=alice1 result=not_found threads=0",
		"who=acme/ops action=delete thread=eve1 result=not_found threads=0",
		"who=acme/ops action=prune thread=alice1 result=ok",
		"who=acme/ops action=delete thread=alice1 result=ok threads=1",
		"who=acme/alice action=delete thread=bob1 result=not_found threads=0",
		"who=acme/ops action=delete_inactive result=ok threads=3 checkpoints=0",
		"who=evil/eve action=delete_older_than result=ok threads=",
	}
	got := log.audit()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			break
		}
	}
}

// TestStreamsEndWithTheKey: a stream ends, in a legal way, when the key or the token of
// its caller does, and the run goes on.
func TestStreamsEndWithTheKey(t *testing.T) {
	t.Run("expired", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { streamEndsWithTheKey(t, true) }) })
	t.Run("revoked", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { streamEndsWithTheKey(t, false) }) })
}

func streamEndsWithTheKey(t *testing.T, expires bool) {
	revoked, revoke := context.WithCancel(t.Context())
	defer revoke()
	rights := access.Rights{Roles: []access.Role{access.RoleUser}, Revoked: revoked}
	if expires {
		rights.Expires = time.Now().Add(30 * time.Second)
	}
	hold := newGate()
	c := callers{"k": with("alice", rights), "good": {Tenant: "acme", User: "alice"}}
	cfg := config(t)
	cfg.Authenticate, cfg.Agents[0].Model = c.authenticate, holdfast.ModelFunc(hold.model)
	s := must(server.New(cfg))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	req := asked(t, "k", "POST", "http://localhost/runs", say("t", "r", "hi"))
	req.Header.Set("Accept", "text/event-stream")
	answer, ended := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(ended)
		s.Handler().ServeHTTP(answer, req)
	}()
	synctest.Wait() // the stream has shown all that there is
	if !expires {
		revoke()
	}
	<-ended // or this test does not end
	got := answer.Body.String()
	if !strings.Contains(got, "RUN_STARTED") || !strings.Contains(got, `"code":"unauthenticated"`) ||
		strings.Count(got, "RUN_ERROR") != 1 || strings.Contains(got, "RUN_FINISHED") {
		t.Errorf("the stream is %q", got)
	}
	if info := must(s.Thread(t.Context(), c["good"], "t"))(t); info.Status != threads.StatusRunning {
		t.Errorf("the run is %s", info.Status)
	}
	close(hold.open)
	for _, err := range s.Watch(t.Context(), c["good"], "t") {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestStreamsThatEnded: a run that ends before its caller's key does has no other end.
func TestStreamsThatEnded(t *testing.T) {
	revoked, revoke := context.WithCancel(t.Context())
	defer revoke()
	who := with("alice", access.Rights{Roles: []access.Role{access.RoleUser}, Revoked: revoked})
	_, s, _ := keyed(t, callers{}, nil)
	var last string
	for ev, err := range s.Run(t.Context(), who, server.Input{Thread: "t", Text: "hi"}) {
		if err != nil {
			t.Error(err)
		}
		if last = ev.Type; last == "RUN_FINISHED" {
			revoke()
		}
	}
	if last != "RUN_FINISHED" {
		t.Errorf("the last event is %s", last)
	}
}
