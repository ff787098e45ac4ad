package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

var updateRefusals = flag.Bool("update-refusals", false, "write what TestRefusals finds to its golden file")

// permissions notes what the server asks its authorizer, each question once.
type permissions struct {
	mu    sync.Mutex
	asked []string
}

func (p *permissions) authorize(ctx context.Context, who holdfast.Principal, do access.Action, agent string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if question := strings.TrimSpace(string(do) + " " + agent); !slices.Contains(p.asked, question) {
		p.asked = append(p.asked, question)
	}
	return server.Authorize(ctx, who, do, agent)
}

// take returns what was asked since the last time.
func (p *permissions) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.asked = nil }()
	if len(p.asked) == 0 {
		return "nothing"
	}
	return strings.Join(p.asked, ", ")
}

// requestsOf has, for each route that authenticates its callers, what is sent to it: a body,
// and a query after a question mark. T stands for a thread, whose only run was first.
var requestsOf = map[string][]string{
	"POST /runs": {
		`{"threadId":"T","runId":"again","messages":[]}`,
		`{"threadId":"T","runId":"first","messages":[]}`,
		`{"threadId":"T","runId":"second","messages":[{"id":"m","role":"user","content":"hi"}]}`,
	},
	"POST /agents/{agent}/runs": {
		`{"threadId":"T","runId":"second","messages":[{"id":"m","role":"user","content":"hi"}]}`,
	},
	"POST /threads/{thread}/calls/{call}/result": {`{"result":1}`},
	"PATCH /threads/{thread}":                    {`{"title":"x"}`},
	"POST /threads/{thread}/fork":                {`{}`, `{"preview":true}`},
	"POST /threads/{thread}/rewind": {
		`{"checkpointId":"000000000001"}`,
		`{"checkpointId":"000000000001","preview":true}`,
	},
	"POST /threads/{thread}/prune":        {`{}`, `{"dryRun":true}`},
	"POST /maintenance/delete-older-than": {`{"olderThan":"1000h"}`},
	"POST /maintenance/delete-inactive":   {`{"threshold":"1000h"}`},
	"POST /maintenance/backup":            {`{"dir":"/x"}`},
	"POST /threads/import":                {`{"kind":"nonsense"}`},
	"GET /threads":                        {"", "?user=*", "?status=running", "?user=*&status=running"},
	"POST /ai-sdk/{agent}": {
		`{"id":"T","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`,
		`{"id":"T","trigger":"regenerate-message"}`,
	},
	"GET /runs":                           {"", "?threadId=T", "?threadId=T&limit=1", "?runId=second", "?runId=none"},
	"GET /agents/{agent}/runs":            {"?threadId=T", "?offset=-1&runId=second"},
	"GET /ai-sdk/{agent}/{thread}/stream": {"?sdk=6", "?after=1-x"}, // others are shown what has just ended, too
	"POST /copilotkit": {
		`{"method":"info"}`,
		`{"method":"agent/run","params":{"agentId":"plain"},"body":` +
			`{"threadId":"T","runId":"second","messages":[{"id":"m","role":"user","content":"hi"}]}}`,
		`{"method":"agent/connect","params":{"agentId":"plain"},"body":{"threadId":"T","messages":[]}}`,
		`{"method":"agent/stop","params":{"agentId":"plain","threadId":"T"}}`,
	},
	"POST /copilotkit/agent/{agent}/run": {
		`{"threadId":"T","runId":"second","messages":[{"id":"m","role":"user","content":"hi"}]}`,
	},
	"POST /copilotkit/agent/{agent}/suggest": {
		`{"threadId":"T-side","runId":"second","messages":[{"id":"m","role":"user","content":"hi"}]}`,
	},
	"POST /copilotkit/agent/{agent}/connect": {`{"threadId":"T","messages":[]}`, `{"threadId":"none","messages":[]}`},
	"PATCH /copilotkit/threads/{thread}":     {`{"name":"x"}`},
}

// TestRefusals compares, for every route and for every method of the server that acts on
// threads, what the authorizer is asked and what each role gets, with what is written down.
func TestRefusals(t *testing.T) {
	asked := &permissions{}
	c := callers{
		"all":     {Tenant: "acme", User: "alice"},
		"nothing": role("alice"),
		"ask":     with("alice", access.Rights{Roles: []access.Role{access.RoleUser}, Agents: []string{"ask"}}),
		// Of another user of the tenant than the threads'.
		"ops":        role("ops", access.RoleServerOperator),
		"tenant ops": role("ops", access.RoleTenantOperator),
		// The role of earlier builds allows nothing by itself.
		"operator": role("alice", access.FormerOperator),
	}
	for _, r := range access.Roles() {
		c[string(r)] = role("alice", r)
	}
	h, s, _ := keyed(t, c, func(c *server.Config) {
		c.Authorize, c.Settings = asked.authorize, []server.Setting{{Name: "x", Value: "y"}}
	})
	var lines []string
	line := func(what string, get func(key, thread string) string) {
		got := what + "\n"
		for _, key := range slices.Sorted(maps.Keys(c)) {
			thread := fmt.Sprintf("t%d-%s", len(lines), key)
			for range s.Run(t.Context(), c["all"], server.Input{Thread: thread, Run: "first", Text: "hi"}) {
			}
			asked.take()
			answer := get(key, thread)
			got += fmt.Sprintf("  %-15s %-22s asked %s\n", key, answer, asked.take())
		}
		lines = append(lines, got)
	}
	for _, op := range guardedOperations(t, h.URL) {
		method, path, _ := strings.Cut(op, " ")
		bodies := requestsOf[op]
		if bodies == nil {
			bodies = []string{""}
		}
		for _, body := range bodies {
			for _, user := range []string{"", "alice"} {
				reads := method == http.MethodGet && (strings.HasPrefix(path, "/threads") || path == "/questions")
				if user != "" && !reads {
					continue
				}
				line(strings.TrimSpace(op+" "+body+" "+user), func(key, thread string) string {
					fill := strings.NewReplacer("{thread}", thread, "{run}", "first", "{checkpoint}", "000000000001",
						"{agent}", "plain", "{call}", "c", "{tool}", "f", `"T`, `"`+thread)
					url, sent := h.URL+fill.Replace(path), fill.Replace(body)
					if strings.HasPrefix(body, "?") {
						url, sent = url+body, ""
					}
					r := ask(t, key, method, url, sent)
					if user != "" {
						r.Header.Set("Holdfast-User", user)
					}
					return outcomeOf(t, r)
				})
			}
		}
	}
	for _, m := range serverMethods {
		line("Server."+m.name, func(key, thread string) string {
			var public *holdfast.Error
			switch err := m.call(t.Context(), s, c[key], thread); {
			case errors.As(err, &public):
				return public.Code
			case err != nil:
				return err.Error()
			}
			return "ok"
		})
	}
	compareRefusals(t, strings.Join(lines, ""))
}

// ask returns a request with a key.
func ask(t *testing.T, key, method, url, body string) *http.Request {
	t.Helper()
	r := asked(t, key, method, url, body)
	if body == "" {
		r.Header.Del("Content-Type")
	}
	return r
}

// outcomeOf returns the status of the answer and, if it is an error, its code.
func outcomeOf(t *testing.T, r *http.Request) string {
	t.Helper()
	res := must(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	var body struct {
		Error struct{ Code string }
	}
	text := must(io.ReadAll(res.Body))(t)
	if res.StatusCode >= http.StatusBadRequest && json.Unmarshal(text, &body) != nil {
		t.Errorf("%s %s: %d %s", r.Method, r.URL, res.StatusCode, text)
	}
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", body.Error.Code))
}

// guardedOperations returns the method and the path of each route that is not for everybody.
func guardedOperations(t *testing.T, url string) (list []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Security []any
		}
	}
	_, text := call(t, "all", "GET", url+"/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method, op := range methods {
			if op.Security != nil || path == "/maintenance/backup" {
				list = append(list, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(list)
	return list
}

// compareRefusals compares a text with the golden file, line by line.
func compareRefusals(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join("testdata", "refusals.txt")
	if *updateRefusals {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := string(must(os.ReadFile(file))(t))
	is, should := strings.Split(got, "\n"), strings.Split(want, "\n")
	about := ""
	for i := range max(len(is), len(should)) {
		if i >= len(is) || i >= len(should) {
			t.Fatalf("%d lines, want %d", len(is), len(should))
		}
		if !strings.HasPrefix(should[i], " ") {
			about = should[i]
		}
		if is[i] != should[i] {
			t.Errorf("%s:\n%s, want\n%s", about, is[i], should[i])
		}
	}
}

// serverMethods are the methods of the server that act on threads on behalf of a caller.
var serverMethods = []struct {
	name string
	call func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error
}{
	{"Run", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		return firstError(s.Run(ctx, who, server.Input{Thread: thread, Text: "more"}))
	}},
	{"Watch", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		return firstError(s.Watch(ctx, who, thread))
	}},
	{"Events", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		return firstError(s.Events(ctx, who, thread, "first", ""))
	}},
	{"Cancel", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Cancel(ctx, who, thread, "first")
		return err
	}},
	{"Threads", func(ctx context.Context, s *server.Server, who holdfast.Principal, _ string) error {
		_, err := s.Threads(ctx, who, timeZero, 0)
		return err
	}},
	{"Thread", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Thread(ctx, who, thread)
		return err
	}},
	{"Messages", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Messages(ctx, who, thread)
		return err
	}},
	{"State", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.State(ctx, who, thread)
		return err
	}},
	{"Runs", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Runs(ctx, who, thread)
		return err
	}},
	{"Children", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Children(ctx, who, thread)
		return err
	}},
	{"Checkpoints", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Checkpoints(ctx, who, thread, "", timeZero, 0)
		return err
	}},
	{"Checkpoint", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Checkpoint(ctx, who, thread, "000000000001")
		return err
	}},
	{"Mark", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Mark(ctx, who, thread, threads.Mark{})
		return err
	}},
	{"Fork", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Fork(ctx, who, thread, threads.Travel{})
		return err
	}},
	{"Fork preview", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Fork(ctx, who, thread, threads.Travel{Preview: true})
		return err
	}},
	{"Rewind", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Rewind(ctx, who, thread, threads.Travel{Checkpoint: "000000000001"})
		return err
	}},
	{"Rewind preview", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Rewind(ctx, who, thread, threads.Travel{Checkpoint: "000000000001", Preview: true})
		return err
	}},
	{"Replay", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Replay(ctx, who, thread, server.ReplayOptions{Checkpoint: "000000000001"})
		return err
	}},
	{"Prune", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Prune(ctx, who, thread, "", 1, false)
		return err
	}},
	{"FinishCall", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.FinishCall(ctx, who, thread, "c", threads.OutsideResult{Result: json.RawMessage("1")})
		return err
	}},
	{"DeleteOlderThan", func(ctx context.Context, s *server.Server, who holdfast.Principal, _ string) error {
		_, err := s.DeleteOlderThan(ctx, who, time.Now().Add(-time.Hour), false)
		return err
	}},
	{"DeleteInactive", func(ctx context.Context, s *server.Server, who holdfast.Principal, _ string) error {
		_, err := s.DeleteInactive(ctx, who, time.Now().Add(-time.Hour), false)
		return err
	}},
	{"Delete", func(ctx context.Context, s *server.Server, who holdfast.Principal, thread string) error {
		_, err := s.Delete(ctx, who, thread, "", false)
		return err
	}},
}

// firstError reads a stream to its end or its error.
func firstError(events iter.Seq2[server.Event, error]) error {
	for _, err := range events {
		if err != nil {
			return err
		}
	}
	return nil
}
