package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redistest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/server"
)

// serving is a server of a test.
type serving struct {
	t    *testing.T
	url  string
	stop func()
}

// serve starts a server with one agent. It ends with the test, or before.
func serve(t *testing.T, store string, agent holdfast.Agent, change ...func(*server.Config)) *serving {
	t.Helper()
	cfg := server.Config{
		Store: store, MaxIterations: 10_000, Agents: []holdfast.Agent{agent}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	stop := sync.OnceFunc(func() {
		h.CloseClientConnections()
		h.Close()
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &serving{t: t, url: h.URL, stop: stop}
}

// shown is an event, with what the tests look at.
type shown struct {
	Type, Code, Message, Name, Content string
	Value                              json.RawMessage
	Outcome                            struct {
		Type       string
		Interrupts []struct{ ID, Reason, Message string }
	}
}

// post starts a run and returns its events, after it has ended.
func (s *serving) post(thread, run string, body map[string]any) []shown {
	s.t.Helper()
	if body == nil {
		body = map[string]any{"messages": []any{map[string]any{"id": "m" + run, "role": "user", "content": "go"}}}
	}
	body["threadId"], body["runId"], body["protocolVersion"] = thread, run, "1.0"
	if body["messages"] == nil {
		body["messages"] = []any{}
	}
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	res, err := http.Post(s.url+"/runs", "application/json", bytes.NewReader(data))
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Errorf("%d %v %s", res.StatusCode, err, text)
		return nil
	}
	var events []shown
	for line := range strings.Lines(string(text)) {
		if data, is := strings.CutPrefix(line, "data:"); is {
			var e shown
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				s.t.Error(err)
			}
			events = append(events, e)
		}
	}
	return events
}

func ending(events []shown) shown {
	if len(events) == 0 {
		return shown{}
	}
	return events[len(events)-1]
}

// named returns the values of the CUSTOM events with a name.
func named(events []shown, name string) (values []string) {
	for _, e := range events {
		if e.Name == name {
			values = append(values, string(e.Value))
		}
	}
	return values
}

// worker is an agent whose model calls tools without an end, and reports 50 tokens
// for each call; every call reserves 100.
func worker(b middleware.BudgetOptions, model func(n int64) holdfast.Delta) holdfast.Agent {
	var n atomic.Int64
	b.ReserveTokens = middleware.ReserveTokens{Input: 60, Output: 40}
	return holdfast.Agent{
		Name:  "worker",
		Tools: []holdfast.Tool{holdfast.NewTool("work", "works", func(context.Context, struct{}) (string, error) { return "done", nil })},
		Model: holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				yield(model(n.Add(1)), ctx.Err())
			}
		}),
		Middleware: []holdfast.Middleware{middleware.Budget(b)},
	}
}

func works(u holdfast.Usage) holdfast.Delta {
	return holdfast.Delta{Call: &holdfast.CallDelta{Name: "work", Arguments: "{}"}, Usage: &u, Finish: holdfast.FinishToolCalls}
}

// TestBudgetEndsARun: the run ends with the reason, the thread's next runs do, and a
// fork of it has no budget of its own.
func TestBudgetEndsARun(t *testing.T) {
	s := serve(t, "memory:", worker(middleware.BudgetOptions{Thread: middleware.BudgetLimit{Tokens: 220}},
		func(int64) holdfast.Delta { return works(using(40, 10)) }))
	events := s.post("t", "r1", nil)
	end := ending(events)
	if end.Type != "RUN_ERROR" || end.Code != holdfast.CodeBudgetExceeded || !strings.HasPrefix(end.Message, "The thread has used 150 of its budget of 220 tokens; 100 more are needed for the next call. Raise") {
		t.Errorf("got %+v", end)
	}
	if got := named(events, "holdfast.budget_exceeded"); len(got) != 1 || got[0] != `{"scope":"thread","unit":"tokens","used":150,"limit":220,"needed":100}` {
		t.Errorf("notices: %s", got)
	}
	if end := ending(s.post("t", "r2", map[string]any{})); end.Code != holdfast.CodeBudgetExceeded {
		t.Errorf("resumed: %+v", end)
	}
	s.fork("t", "t2")
	if end := ending(s.post("t2", "r3", map[string]any{})); end.Code != holdfast.CodeBudgetExceeded || !strings.Contains(end.Message, "used 150 of") {
		t.Errorf("forked: %+v", end)
	}
}

// fork branches a thread off another one, from its newest checkpoint.
func (s *serving) fork(from, to string) {
	s.t.Helper()
	var list struct{ Checkpoints []struct{ ID string } }
	res, err := http.Get(s.url + "/threads/" + from + "/checkpoints")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list.Checkpoints) == 0 {
		s.t.Fatalf("%+v, %v", list, err)
	}
	body := fmt.Sprintf(`{"threadId":%q,"checkpointId":%q}`, to, list.Checkpoints[0].ID)
	made, err := http.Post(s.url+"/threads/"+from+"/fork", "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer made.Body.Close()
	if text, _ := io.ReadAll(made.Body); made.StatusCode >= 300 {
		s.t.Fatalf("%d %s", made.StatusCode, text)
	}
}

// TestBudgetAsksAPerson, who answers after the server was started again.
func TestBudgetAsksAPerson(t *testing.T) {
	store := "bolt:" + filepath.Join(t.TempDir(), "holdfast.db")
	agent := worker(middleware.BudgetOptions{
		Run: middleware.BudgetLimit{Cost: money(t, "1")}, Then: "ask",
		Prices: map[string]middleware.Price{"p/m": {Input: money(t, "10000"), Output: money(t, "10000")}},
	}, func(n int64) holdfast.Delta {
		if n > 2 {
			return holdfast.Delta{Text: "enough", Finish: holdfast.FinishStop}
		}
		return works(using(40, 10))
	})
	first := serve(t, store, agent)
	end := ending(first.post("t", "r1", nil))
	if end.Outcome.Type != "interrupt" || len(end.Outcome.Interrupts) != 1 || end.Outcome.Interrupts[0].Reason != "holdfast:budget" {
		t.Fatalf("got %+v", end)
	}
	asked := end.Outcome.Interrupts[0]
	if asked.Message != "The run has used 0.50 of its budget of 1.00 USD; 1.00 more are needed for the next call. May it go on?" {
		t.Error(asked.Message)
	}
	first.stop()

	second := serve(t, store, agent)
	answer := func(run, question, status string, payload any) shown {
		return ending(second.post("t", run, map[string]any{"resume": []any{map[string]any{"interruptId": question, "status": status, "payload": payload}}}))
	}
	end = answer("r2", asked.ID, "cancelled", nil)
	if end.Code != holdfast.CodeBudgetExceeded {
		t.Fatalf("declined: %+v", end)
	}
	end = ending(second.post("t", "r3", map[string]any{}))
	if end.Outcome.Type != "interrupt" {
		t.Fatalf("asked again: %+v", end)
	}
	end = answer("r4", end.Outcome.Interrupts[0].ID, "resolved", map[string]any{"allow": true, "raise": 0.75})
	if end.Outcome.Type != "interrupt" || !strings.Contains(end.Outcome.Interrupts[0].Message, "has used 1.00 of its budget of 1.75 USD") {
		t.Fatalf("raised once: %+v", end)
	}
	if end = answer("r5", end.Outcome.Interrupts[0].ID, "resolved", map[string]any{"allow": true}); end.Outcome.Type != "success" {
		t.Errorf("raised again: %+v", end)
	}
}

// kept is a store that two servers share.
type kept struct{ holdfast.Store }

func (kept) Close() error { return nil }

// TestBudgetOfManyRuns: eight runs on two servers never use more than their tenant
// may, and stop only when there is no room for another call.
func TestBudgetOfManyRuns(t *testing.T) {
	shared := kept{memstore.New()}
	redis := redistest.Start(t)
	for name, change := range map[string]func(*server.Config){
		"memory": func(c *server.Config) { c.OpenStore = func() (holdfast.Store, error) { return shared, nil } },
		"redis":  func(c *server.Config) { c.Store = redis.URL() },
	} {
		t.Run(name, func(t *testing.T) {
			const limit, reserved = 3000, 100
			var spent, above atomic.Int64
			agent := worker(middleware.BudgetOptions{Tenant: middleware.BudgetLimit{Tokens: limit}}, func(n int64) holdfast.Delta {
				used := 20 + n*13%(reserved-19) // never more than is reserved
				if total := spent.Add(used); total > limit {
					above.Store(total)
				}
				return works(using(used-10, 10))
			})
			servers := []*serving{serve(t, "memory:", agent, change), serve(t, "memory:", agent, change)}
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					if end := ending(servers[i%2].post(fmt.Sprint("t", i), "r", nil)); end.Code != holdfast.CodeBudgetExceeded {
						t.Errorf("run %d: %+v", i, end)
					}
				})
			}
			group.Wait()
			if got := above.Load(); got != 0 {
				t.Errorf("%d tokens were used of %d", got, limit)
			}
			if got := spent.Load(); got < limit-8*reserved {
				t.Errorf("only %d tokens were used of %d", got, limit)
			}
		})
	}
}
