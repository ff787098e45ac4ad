package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
)

// signed is an agent whose model says who it is in two pieces, and waits between them for
// gate, which may be nil. It has a tool and a middleware of that name.
func signed(name, sign string, gate <-chan struct{}) holdfast.Agent {
	model := func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if !yield(holdfast.Delta{Text: sign}, nil) {
				return
			}
			if gate != nil {
				select {
				case <-gate:
				case <-ctx.Done():
					yield(holdfast.Delta{}, ctx.Err())
					return
				}
			}
			yield(
				holdfast.Delta{
					Text:   "/" + sign + "/" + strings.Join(req.Instructions, " "),
					Finish: holdfast.FinishStop,
				},
				nil,
			)
		}
	}
	return holdfast.Agent{
		Name:         name,
		Description:  "I am " + sign,
		Instructions: sign,
		Model:        holdfast.ModelFunc(model),
		Tools: []holdfast.Tool{
			holdfast.NewTool("tool_"+sign, "a tool", func(context.Context, struct{}) (string, error) {
				return "",
					nil
			}),
		},
		Middleware: []holdfast.Middleware{{Name: "test.mw_" + sign}},
	}
}

// answer runs an agent and returns what it says.
func answer(t *testing.T, s *server.Server, thread, agent string) string {
	t.Helper()
	text := ""
	for ev, err := range s.Run(t.Context(), me, server.Input{Thread: thread, Agent: agent, Text: "hi"}) {
		if err != nil {
			t.Fatalf("thread %s: %v", thread, err)
		}
		text += deltaOf(t, ev)
	}
	return text
}

// deltaOf returns the text that an event brings; "" for most.
func deltaOf(t *testing.T, ev server.Event) string {
	t.Helper()
	var e struct{ Delta string }
	if ev.Type == "TEXT_MESSAGE_CONTENT" {
		if err := json.Unmarshal(ev.JSON, &e); err != nil {
			t.Error(err)
		}
	}
	return e.Delta
}

// refused checks that a run of an agent does not begin.
func refused(t *testing.T, s *server.Server, agent, code string) {
	t.Helper()
	for ev, err := range s.Run(t.Context(), me, server.Input{Agent: agent, Text: "hi"}) {
		if err == nil || holdfast.AsError(err).Code != code {
			t.Errorf("a run of %s: %s, %v, want %s", agent, ev.JSON, err, code)
		}
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestReload: what is shown of agents, and what runs get, is new after a reload; the run that
// is under way ends as it began.
func TestReload(t *testing.T) {
	gate := make(chan struct{})
	c := config(t)
	c.Agents = []holdfast.Agent{signed("a", "old", gate), signed("removed", "gone", nil)}
	s := served(t, c)
	next, stop := iter.Pull2(s.Run(t.Context(), me, server.Input{Thread: "t", Agent: "a", Text: "hi"}))
	defer stop()
	text := ""
	for !strings.Contains(text, "old") {
		ev, err, _ := next()
		if err != nil {
			t.Fatal(err)
		}
		text += deltaOf(t, ev)
	}
	added := signed("added", "more", nil)
	added.Fallbacks = []holdfast.Model{signed("", "other", nil).Model}
	unused := must(s.Reload([]holdfast.Agent{signed("a", "new", nil), added},
		map[string]server.Limits{"a": {MaxIterations: 7}}, server.Quotas{PerUser: server.Quota{Runs: 1}}))(t)

	for path, want := range map[string][2][]string{
		"/agents":                    {{"I am new", "tool_new", "test.mw_new", "added"}, {"_old", "removed", "gone"}},
		"/agents/a/capabilities":     {{"tool_new", `"maxIterations":7`}, {"tool_old"}},
		"/agents/added/capabilities": {{"I am more"}, nil},
		"/copilotkit/info":           {{"I am new", "added"}, {"I am old", "removed"}},
		"/metrics": {{`holdfast_runs_total{agent="added",outcome="success"} 0`,
			`holdfast_runs_total{agent="removed",outcome="success"} 0`,
			`holdfast_reloads_total{result="ok"} 1`, `holdfast_reloads_total{result="failed"} 0`}, nil},
	} {
		body := answered(s, "GET", path, "").Body.String()
		for _, text := range want[0] {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not show %s: %s", path, text, body)
			}
		}
		for _, text := range want[1] {
			if strings.Contains(body, text) {
				t.Errorf("%s still shows %s", path, text)
			}
		}
	}
	if res := answered(s, "GET", "/agents/removed/capabilities", ""); res.Code != 404 {
		t.Errorf("the capabilities of the removed agent: %d", res.Code)
	}
	var banner strings.Builder
	if err := s.Banner(&banner); err != nil || !strings.Contains(banner.String(), "a, added") ||
		!strings.Contains(banner.String(), "models      added: ") {
		t.Errorf("%v, %s", err, &banner)
	}
	refused(t, s, "a", codes.LimitExceeded) // the old run counts for the new limit
	if isClosed(unused) {
		t.Error("agents are unused although a run has one of them")
	}
	close(gate)
	for {
		ev, err, more := next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		text += deltaOf(t, ev)
	}
	if text != "old/old/old" {
		t.Errorf("the old run says %q", text)
	}
	<-unused
	if text := answer(t, s, "t", ""); text != "new/new/new" {
		t.Errorf("the next run on the thread says %q", text)
	}
	refused(t, s, "removed", codes.AgentNotFound)
}

// TestReloadMistakes: after a mistake everything is as it was.
func TestReloadMistakes(t *testing.T) {
	c := config(t)
	c.Agents = []holdfast.Agent{signed("a", "old", nil)}
	s := served(t, c)
	noModel, formed := signed("b", "new", nil), signed("b", "new", nil)
	noModel.Model, formed.Output = nil, &holdfast.Output{Schema: []byte(`{"type":7}`)}
	twice := signed("b", "new", nil)
	twice.Tools = append(twice.Tools, twice.Tools...)
	for want, change := range map[string]struct {
		agents []holdfast.Agent
		quotas server.Quotas
	}{
		"no agent":   {},
		"two agents": {agents: []holdfast.Agent{signed("a", "new", nil), signed("a", "new", nil)}},
		"no model":   {agents: []holdfast.Agent{signed("a", "new", nil), noModel}},
		"two tools":  {agents: []holdfast.Agent{signed("a", "new", nil), twice}},
		"its Output": {agents: []holdfast.Agent{signed("a", "new", nil), formed}},
		"negative limit": {agents: []holdfast.Agent{signed("a", "new", nil)},
			quotas: server.Quotas{PerUser: server.Quota{Runs: -1}}},
	} {
		if unused, err := s.Reload(change.agents, nil, change.quotas); err == nil ||
			!strings.Contains(err.Error(), want) || unused != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
	s.ReloadFailed()
	if text := answer(t, s, "t", ""); text != "old/old/old" {
		t.Errorf("after mistakes the agent says %q", text)
	}
	if body := answered(s, "GET", "/agents", "").Body.String(); strings.Contains(body, "new") {
		t.Errorf("after mistakes there are %s", body)
	}
	if body := answered(s, "GET", "/metrics", "").Body.String(); !strings.Contains(body,
		`holdfast_reloads_total{result="failed"} 7`) {
		t.Error("the mistakes are not counted")
	}
}

// TestReloadsAtOnce: several reloads at a time, while runs begin, come one after the other,
// and each earlier set of agents is unused in the end.
func TestReloadsAtOnce(t *testing.T) {
	c := config(t)
	c.Agents = []holdfast.Agent{signed("a", "0", nil)}
	s := served(t, c)
	var all, runs sync.WaitGroup
	unused := make(chan (<-chan struct{}), 60)
	for n := range 3 {
		all.Go(func() {
			for i := range 20 {
				sign := fmt.Sprint(n, ".", i)
				u, err := s.Reload([]holdfast.Agent{signed("a", sign, nil)},
					map[string]server.Limits{"a": {ToolTimeout: time.Second}},
					server.Quotas{PerUser: server.Quota{Threads: 1000 + i}})
				if err != nil {
					t.Error(err)
				}
				unused <- u
			}
		})
	}
	for n := range 4 {
		runs.Go(func() {
			for i := range 20 {
				text := ""
				for ev, err := range s.Run(t.Context(), me,
					server.Input{Thread: fmt.Sprint("t", n, ".", i), Text: "hi"}) {
					if err != nil {
						t.Error(err)
						return
					}
					text += deltaOf(t, ev)
				}
				if parts := strings.Split(text, "/"); len(parts) != 3 || parts[0] != parts[1] || parts[0] != parts[2] {
					t.Errorf("a run says %q", text)
				}
				_ = answered(s, "GET", "/agents", "").Body
			}
		})
	}
	all.Wait()
	runs.Wait()
	close(unused)
	for u := range unused {
		<-u
	}
}

// TestReloadAtShutdown: a shutdown that cuts a run off ends the use of its agents.
func TestReloadAtShutdown(t *testing.T) {
	c := config(t)
	c.Agents = []holdfast.Agent{signed("a", "old", make(chan struct{}))}
	s := must(server.New(c))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	firstText(t, s.Run(t.Context(), me, server.Input{Thread: "t", Text: "hi"}))
	unused := must(s.Reload([]holdfast.Agent{signed("a", "new", nil)}, nil, server.Quotas{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Shutdown(ctx) // says that it has cut the run off
	<-unused
	if _, err := s.Reload([]holdfast.Agent{signed("a", "late", nil)}, nil, server.Quotas{}); err != nil {
		t.Error(err)
	}
}

// served starts a server that does not listen, until the end of the test.
func served(t *testing.T, c server.Config) *server.Server {
	t.Helper()
	s := must(server.New(c))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestReloadKeepsServers: a run that began before a reload can call the tools of an MCP server
// that is not in the file any more; the server is closed when the run has ended.
func TestReloadKeepsServers(t *testing.T) {
	t.Parallel()
	parts, _ := childParts(t, "the-token")
	l := must(server.Load(written(t, withServers), parts))(t)
	t.Cleanup(l.Close)
	ready(t, l)
	gate := make(chan struct{})
	l.Agents[0].Model = holdfast.ModelFunc(func(_ context.Context,
		req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: last.PlainText(), Finish: holdfast.FinishStop}, nil)
				return
			}
			if yield(holdfast.Delta{Text: "I ask. "}, nil) {
				<-gate
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: "child_say", Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			}
		}
	})
	c := config(t)
	c.Agents = l.Agents
	s := served(t, c)
	firstText(t, s.Run(t.Context(), me, server.Input{Thread: "t", Run: "r", Agent: l.Agents[0].Name, Text: "hi"}))
	unused := must(s.Reload([]holdfast.Agent{signed("new", "new", nil)}, nil, server.Quotas{}))(t)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-unused
		l.Close()
	}()
	close(gate)
	text := ""
	for _, ev := range all(t, s.Events(t.Context(), me, "t", "r", "")) {
		text += deltaOf(t, ev)
	}
	if !strings.Contains(text, "the child has") {
		t.Errorf("the run says %q", text)
	}
	<-closed
	if err := speak(t, l.Servers[0]); err == nil {
		t.Error("the server lives on without anybody who uses it")
	}
}
