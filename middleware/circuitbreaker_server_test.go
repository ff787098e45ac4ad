package middleware_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/server"
)

// conversation talks over HTTP to a server with one agent. It sends only what is new.
type conversation struct {
	t    *testing.T
	cfg  server.Config
	url  string
	stop func()
	sent int
}

// converse starts a server; it is stopped with the test.
func converse(t *testing.T, store string, agent holdfast.Agent) *conversation {
	c := &conversation{t: t, cfg: server.Config{
		Store: store, MaxIterations: 1000, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Agents: []holdfast.Agent{agent},
	}}
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *conversation) start() {
	c.t.Helper()
	s, err := server.New(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := s.StartEngine(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	c.url = h.URL
	c.stop = func() {
		h.CloseClientConnections()
		h.Close()
		if err := s.Shutdown(context.WithoutCancel(c.t.Context())); err != nil {
			c.t.Error(err)
		}
	}
}

// restart has another server go on with the same store.
func (c *conversation) restart() {
	c.t.Helper()
	c.stop()
	c.start()
}

// frame is an event of the stream, with the members that tests look at.
type frame struct {
	Type       string          `json:"type"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Name       string          `json:"name"`
	Value      json.RawMessage `json:"value"`
	Content    string          `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	Outcome    struct {
		Type       string `json:"type"`
		Interrupts []struct {
			ID             string          `json:"id"`
			Reason         string          `json:"reason"`
			Message        string          `json:"message"`
			ResponseSchema json.RawMessage `json:"responseSchema"`
			Metadata       json.RawMessage `json:"metadata"`
		} `json:"interrupts"`
		PendingToolCallIDs []string `json:"pendingToolCallIds"`
	} `json:"outcome"`
}

// frames are the events of one run.
type frames []frame

// last is how the run ended.
func (f frames) last() frame { return f[len(f)-1] }

// notices are the values of the events with the name.
func (f frames) notices(name string) []string {
	var out []string
	for _, e := range f {
		if e.Type == "CUSTOM" && e.Name == name {
			out = append(out, string(e.Value))
		}
	}
	return out
}

// results are the texts of the tool results.
func (f frames) results() []string {
	var out []string
	for _, e := range f {
		if e.Type == "TOOL_CALL_RESULT" {
			out = append(out, e.Content)
		}
	}
	return out
}

// question is the id of the one question that the run ended with.
func (f frames) question(t *testing.T) string {
	t.Helper()
	if q := f.last().Outcome.Interrupts; len(q) == 1 {
		return q[0].ID
	}
	t.Fatalf("the run did not end with one question: %+v", f.last())
	return ""
}

// say posts a user's message.
func (c *conversation) say(text string) frames {
	c.t.Helper()
	return c.post(fmt.Sprintf(`"messages":[{"id":"user%d","role":"user","content":%q}]`, c.sent, text))
}

// goOn posts no messages, which resumes a run that has stopped.
func (c *conversation) goOn() frames {
	c.t.Helper()
	return c.post(`"messages":[]`)
}

// answer answers a question.
func (c *conversation) answer(interrupt, payload string) frames {
	c.t.Helper()
	return c.post(fmt.Sprintf(`"messages":[],"resume":[{"interruptId":%q,"status":"resolved","payload":%s}]`, interrupt, payload))
}

// decline refuses to answer a question.
func (c *conversation) decline(interrupt string) frames {
	c.t.Helper()
	return c.post(fmt.Sprintf(`"messages":[],"resume":[{"interruptId":%q,"status":"cancelled"}]`, interrupt))
}

// deliver posts the frontend's result of a call.
func (c *conversation) deliver(call, content string) frames {
	c.t.Helper()
	return c.post(fmt.Sprintf(`"messages":[{"id":"result%d","role":"tool","toolCallId":%q,"content":%q}]`, c.sent, call, content))
}

func (c *conversation) post(members string) frames {
	c.t.Helper()
	c.sent++
	body := fmt.Sprintf(`{"threadId":"t","runId":"run%d","protocolVersion":"1.0","tools":[{"name":"confirm","description":"","parameters":{}}],%s}`, c.sent, members)
	res, err := http.Post(c.url+"/runs", "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var out frames
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var f frame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, f)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		c.t.Fatalf("status %d, no events (%v)", res.StatusCode, err)
	}
	return out
}

// callingModel is a model that makes the calls that next returns, each "name arguments",
// or without any says that it is done.
func callingModel(next func(req *holdfast.ModelRequest) []string) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			calls := next(req)
			for i, c := range calls {
				name, arguments, _ := strings.Cut(c, " ")
				if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: arguments}}, nil) {
					return
				}
			}
			if len(calls) > 0 {
				yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
				return
			}
			yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
		}
	})
}

// alwaysCalling is a model that makes the same calls for ever.
func alwaysCalling(calls ...string) holdfast.Model {
	return callingModel(func(*holdfast.ModelRequest) []string { return calls })
}

// countedTool is a tool that counts how often it is run.
func countedTool(name string, runs *atomic.Int64) holdfast.Tool {
	return holdfast.NewTool(name, "", func(context.Context, map[string]any) (string, error) {
		return fmt.Sprintf("%s %d", name, runs.Add(1)), nil
	})
}

func TestTheBreakerEndsARunAndAPersonResumesIt(t *testing.T) {
	var searched, looked atomic.Int64
	c := converse(t, "memory:", holdfast.Agent{
		Name: "a", Model: alwaysCalling(`search {"q":"parcel","n":1}`, `look {}`),
		Tools:      []holdfast.Tool{countedTool("search", &searched), countedTool("look", &looked)},
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{Tools: map[string]int{"look": 0}})},
	})
	for i := range 2 {
		var got frames
		if i == 0 {
			got = c.say("where is it?")
		} else {
			got = c.goOn()
		}
		end := got.last()
		if end.Type != "RUN_ERROR" || end.Code != holdfast.CodeCircuitOpen {
			t.Fatalf("run %d ended with %+v", i, end)
		}
		for _, want := range []string{"search 3 times in a row", "the limit is 3", `"messages": []`} {
			if !strings.Contains(end.Message, want) {
				t.Errorf("the error lacks %q: %s", want, end.Message)
			}
		}
		if n := got.notices("holdfast.circuit_open"); len(n) != 1 || n[0] != `{"tool":"search","count":3,"limit":3}` {
			t.Errorf("notices: %q", n)
		}
		if r := got.results(); len(r) != 6 || !strings.HasPrefix(r[4], "Not started:") || !strings.HasPrefix(r[5], "Not started:") {
			t.Errorf("results: %q", r)
		}
		if s, l, want := searched.Load(), looked.Load(), int64(2*(i+1)); s != want || l != want {
			t.Errorf("searched %d times, looked %d times, want %d", s, l, want)
		}
	}
}

func TestTheBreakerTellsTheModelWhichThenDoesSomethingElse(t *testing.T) {
	var searched atomic.Int64
	model := callingModel(func(req *holdfast.ModelRequest) []string {
		if last := req.Messages[len(req.Messages)-1]; strings.Contains(last.Text, "3 times in a row") {
			return []string{`search {"q":"letter"}`}
		} else if strings.Contains(last.Text, "search 3") {
			return nil
		}
		return []string{`search {"q":"parcel"}`}
	})
	c := converse(t, "memory:", holdfast.Agent{
		Name: "a", Model: model, Tools: []holdfast.Tool{countedTool("search", &searched)},
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{Then: "tell"})},
	})
	got := c.say("where is it?")
	if got.last().Type != "RUN_FINISHED" || searched.Load() != 3 || len(got.notices("holdfast.circuit_open")) != 1 {
		t.Errorf("searched %d times, ended with %+v", searched.Load(), got.last())
	}
	if r := got.results(); len(r) != 4 || !strings.Contains(r[2], "Not run: search has been called 3 times") {
		t.Errorf("results: %q", r)
	}
}

// TestTheBreakerCountsTheFrontendsCalls: each of them is a run of its own, and here
// also a server of its own.
func TestTheBreakerCountsTheFrontendsCalls(t *testing.T) {
	c := converse(t, "bolt:"+t.TempDir()+"/holdfast.db", holdfast.Agent{
		Name: "a", Model: alwaysCalling(`confirm {"sure":true}`),
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{})},
	})
	got := c.say("do it")
	for range 2 {
		pending := got.last().Outcome.PendingToolCallIDs
		if len(pending) != 1 {
			t.Fatalf("nothing is pending: %+v", got.last())
		}
		c.restart()
		got = c.deliver(pending[0], "no")
	}
	if got.last().Code != holdfast.CodeCircuitOpen {
		t.Errorf("the third call ended with %+v", got.last())
	}
}
