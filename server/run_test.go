package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// me is the user of a server without keys.
var me = server.LocalPrincipal()

// gate is a model that says "one ", waits until it is opened, and says "two".
type gate struct{ open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{})} }

func (g *gate) model(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		if !yield(holdfast.Delta{Text: "one "}, nil) {
			return
		}
		select {
		case <-g.open:
			yield(holdfast.Delta{Text: "two", Finish: holdfast.FinishStop}, nil)
		case <-ctx.Done():
			yield(holdfast.Delta{}, ctx.Err())
		}
	}
}

// running returns a server that does not listen, with the model.
func running(t *testing.T, model holdfast.ModelFunc) *server.Server {
	t.Helper()
	c := config(t)
	c.Agents[0].Model = model
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

// all reads a stream to its end.
func all(t *testing.T, stream iter.Seq2[server.Event, error]) []server.Event {
	t.Helper()
	var events []server.Event
	for ev, err := range stream {
		if err != nil {
			t.Fatalf("after %d events: %v", len(events), err)
		}
		events = append(events, ev)
	}
	return events
}

// firstText reads a stream up to the first piece of text, and leaves it.
func firstText(t *testing.T, stream iter.Seq2[server.Event, error]) server.Event {
	t.Helper()
	for ev, err := range stream {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type == "TEXT_MESSAGE_CONTENT" {
			return ev
		}
	}
	t.Fatal("the stream has no text")
	return server.Event{}
}

// lines writes events as the lines that Server-Sent Events have.
func lines(events []server.Event) []string {
	var out []string
	for _, ev := range events {
		if ev.Cursor != "" {
			out = append(out, "id: "+ev.Cursor)
		}
		out = append(out, "data: "+string(ev.JSON))
	}
	return out
}

// answered sends a request to a server that does not listen.
func answered(s *server.Server, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// overHTTP returns the lines that a handler sends.
func overHTTP(t *testing.T, s *server.Server, method, path, body string) []string {
	t.Helper()
	w := answered(s, method, path, body)
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	var out []string
	for scan := bufio.NewScanner(w.Body); scan.Scan(); {
		if line := scan.Text(); strings.HasPrefix(line, "id: ") || strings.HasPrefix(line, "data: ") {
			out = append(out, line)
		}
	}
	return out
}

// TestRun: a run without HTTP has the same events as one over HTTP, live, replayed and as a
// whole thread.
func TestRun(t *testing.T) {
	s := running(t, hello)
	input := server.Input{Thread: "t", Run: "r", Text: "hi"}
	live := all(t, s.Run(t.Context(), me, input))
	if first, last := live[0].Type, live[len(live)-1].Type; first != "RUN_STARTED" || last != "RUN_FINISHED" {
		t.Errorf("from %s to %s", first, last)
	}
	for _, ev := range live {
		var typed struct{ Type string }
		if err := json.Unmarshal(ev.JSON, &typed); err != nil || typed.Type != ev.Type {
			t.Errorf("%s: %s, %v", ev.Type, ev.JSON, err)
		}
	}
	body := `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[{"id":"r-input",` +
		`"role":"user","content":"hi"}]}`
	for name, c := range map[string]struct {
		stream iter.Seq2[server.Event, error]
		http   []string
	}{
		"the same input again": {s.Run(t.Context(), me, input), overHTTP(t, s, http.MethodPost, "/runs", body)},
		"the run's events": {s.Events(t.Context(), me, "t", "r", ""),
			overHTTP(t, s, http.MethodGet, "/threads/t/runs/r/events", "")},
		"the whole thread": {s.Watch(t.Context(), me, "t"), overHTTP(t, s, http.MethodGet, "/threads/t/stream", "")},
		"a run's rest": {s.Events(t.Context(), me, "t", "r", live[1].Cursor),
			overHTTP(t, s, http.MethodGet, "/threads/t/runs/r/events?after="+live[1].Cursor, "")},
		"a thread's rest": {s.Events(t.Context(), me, "t", "", live[1].Cursor),
			overHTTP(t, s, http.MethodGet, "/threads/t/stream?after="+live[1].Cursor, "")},
		"somebody's cursor": {s.Events(t.Context(), me, "t", "", "1-zzzzzz"),
			overHTTP(t, s, http.MethodGet, "/threads/t/stream?after=1-zzzzzz", "")},
	} {
		if got := lines(all(t, c.stream)); len(got) == 0 || !slices.Equal(got, c.http) {
			t.Errorf("%s:\n%q\nover HTTP:\n%q", name, got, c.http)
		}
	}
	if again := lines(all(t, s.Events(t.Context(), me, "t", "r", ""))); !slices.Equal(again, lines(live)) {
		t.Errorf("replayed\n%q\nlive\n%q", again, lines(live))
	}
	if rest := all(t, s.Events(t.Context(), me, "t", "r", live[len(live)-1].Cursor)); len(rest) != 0 {
		t.Errorf("after the last event there is %q", lines(rest))
	}
}

// TestRunChoosesIDs: without ids each call is a new run on a new thread, but using its
// iterator twice is one run.
func TestRunChoosesIDs(t *testing.T) {
	s := running(t, hello)
	stream := s.Run(t.Context(), me, server.Input{Text: "hi"})
	all(t, stream)
	all(t, stream)
	all(t, s.Run(t.Context(), me, server.Input{Text: "hi"}))
	list := must(s.Threads(t.Context(), me, timeZero, 0))(t)
	if len(list) != 2 || list[0].ID == list[1].ID {
		t.Fatalf("threads %+v", list)
	}
	for _, info := range list {
		if runs := must(s.Runs(t.Context(), me, info.ID))(t); len(runs) != 1 || runs[0].ID == "" {
			t.Errorf("runs of %s: %+v", info.ID, runs)
		}
	}
}

// TestRunIsLeft: a caller that leaves the loop or cancels the context stops watching, and the
// run goes on for others.
func TestRunIsLeft(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, s *server.Server) server.Event{
		"the loop": func(t *testing.T, s *server.Server) server.Event {
			return firstText(t, s.Run(t.Context(), me, server.Input{Thread: "t", Run: "r", Text: "hi"}))
		},
		"the context": func(t *testing.T, s *server.Server) (last server.Event) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var failed error
			for ev, err := range s.Run(ctx, me, server.Input{Thread: "t", Run: "r", Text: "hi"}) {
				if failed = err; err == nil {
					last = ev
				}
				if ev.Type == "TEXT_MESSAGE_CONTENT" {
					cancel()
				}
			}
			var e *holdfast.Error
			if !errors.As(failed, &e) || e.Code != codes.StreamCut || !errors.Is(failed, context.Canceled) {
				t.Errorf("the last error is %v", failed)
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			s := running(t, g.model)
			last := leave(t, s)
			if info := must(s.Thread(t.Context(), me, "t"))(t); info.Status != threads.StatusRunning {
				t.Errorf("the run is %s", info.Status)
			}
			close(g.open)
			rest := all(t, s.Events(t.Context(), me, "t", "r", last.Cursor))
			text := strings.Join(lines(rest), "\n")
			if !strings.Contains(text, "two") || strings.Contains(text, "one ") ||
				rest[len(rest)-1].Type != "RUN_FINISHED" {
				t.Errorf("the rest is\n%s", text)
			}
		})
	}
}

// TestCancel: Cancel ends the run for all who watch it, and ending it again changes nothing.
func TestCancel(t *testing.T) {
	s := running(t, newGate().model)
	cancelled := false
	var last server.Event
	for ev, err := range s.Run(t.Context(), me, server.Input{Thread: "t", Run: "r", Text: "hi"}) {
		if err != nil {
			t.Fatal(err)
		}
		if last = ev; ev.Type == "TEXT_MESSAGE_CONTENT" && !cancelled {
			cancelled = true
			if info, err := s.Cancel(t.Context(), me, "t", "r"); err != nil || info.Status != threads.StatusRunning {
				t.Errorf("%+v, %v", info, err)
			}
		}
	}
	if last.Type != "RUN_FINISHED" || !strings.Contains(string(last.JSON), "cancelled") {
		t.Errorf("the last event is %s", last.JSON)
	}
	if info, err := s.Cancel(t.Context(), me, "t", "r"); err != nil || info.Outcome != holdfast.OutcomeCancelled {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestTwoWatchers: two who watch a run see the same events.
func TestTwoWatchers(t *testing.T) {
	g := newGate()
	s := running(t, g.model)
	firstText(t, s.Run(t.Context(), me, server.Input{Thread: "t", Run: "r", Text: "hi"}))
	seen := make(chan []string)
	started := make(chan struct{})
	for range 2 {
		go func() {
			var events []server.Event
			for ev, err := range s.Events(t.Context(), me, "t", "r", "") {
				if err != nil {
					t.Error(err)
				}
				if events = append(events, ev); ev.Type == "TEXT_MESSAGE_CONTENT" &&
					strings.Contains(string(ev.JSON), "one ") {
					started <- struct{}{}
				}
			}
			seen <- lines(events)
		}()
	}
	<-started
	<-started
	close(g.open)
	a, b := <-seen, <-seen
	if !slices.Equal(a, b) || !strings.Contains(strings.Join(a, "\n"), "two") {
		t.Errorf("one sees\n%q\nthe other\n%q", a, b)
	}
}

// TestRunErrors: what cannot be run is an error with a code instead of the first event.
func TestRunErrors(t *testing.T) {
	s := running(t, hello)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for want, stream := range map[string]iter.Seq2[server.Event, error]{
		codes.AgentNotFound + " ":     s.Run(t.Context(), me, server.Input{Agent: "nobody", Text: "hi"}),
		codes.InvalidInput + " runId": s.Run(t.Context(), me, server.Input{Run: "a\nb", Text: "hi"}),
		codes.InvalidInput + " State": s.Run(t.Context(), me,
			server.Input{Text: "hi", State: json.RawMessage("{")}),
		codes.InvalidInput + " ForwardedProps": s.Run(t.Context(), me,
			server.Input{Text: "hi", Branch: true, ForwardedProps: json.RawMessage("[]")}),
		codes.InvalidInput + " Answer.Payload": s.Run(t.Context(), me,
			server.Input{Answers: []server.Answer{{Interrupt: "i", Payload: json.RawMessage("x")}}}),
		codes.InvalidInput + " messages[0].id": s.Run(t.Context(), me,
			server.Input{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: "hi"}}}),
		codes.NothingToRun + " ":     s.Run(t.Context(), me, server.Input{}),
		codes.NotFound + " ":         s.Watch(t.Context(), me, "nope"),
		codes.NotFound + "  (a run)": s.Events(t.Context(), me, "nope", "r", ""),
		codes.InvalidCursor + " ":    s.Events(t.Context(), me, "t", "r", "soon"),
		codes.StreamCut + " ":        s.Run(gone, me, server.Input{Text: "hi"}),
	} {
		n := 0
		for ev, err := range stream {
			n++
			var e *holdfast.Error
			if !errors.As(err, &e) || ev.Type != "" || ev.JSON != nil {
				t.Errorf("want %s, got %s, %v", want, ev.JSON, err)
				continue
			}
			field, _ := e.Details["field"].(string)
			if got := fmt.Sprint(e.Code, " ", field); !strings.HasPrefix(want, got) {
				t.Errorf("want %s, got %s: %v", want, got, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: the iterator yielded %d times", want, n)
		}
	}
}

// TestInput: what an input says arrives: messages, tools, context, state, props, and what it
// chooses about the thread.
func TestInput(t *testing.T) {
	var got *holdfast.ModelRequest
	s := running(t, func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		got = req
		return hello(ctx, req)
	})
	all(t, s.Run(t.Context(), me, server.Input{
		Thread:   "t",
		Agent:    "a",
		Text:     "second",
		State:    json.RawMessage(`{"color":"red"}`),
		Messages: []holdfast.Message{{ID: "m1", Role: holdfast.RoleUser, Text: "first"}},
		Tools: []holdfast.ToolSpec{
			{Name: "confirm", Description: "asks", Parameters: json.RawMessage(`{"type":"object"}`)},
		},
		Context:        []holdfast.ContextItem{{Description: "page", Value: "home"}},
		Policy:         holdfast.Policy{OnBusy: "reject"},
		ForwardedProps: json.RawMessage(`{"mine":1}`),
	}))
	texts := []string{}
	for _, m := range got.Messages {
		if m.Role == holdfast.RoleUser {
			texts = append(texts, m.Text)
		}
	}
	if !slices.Equal(texts, []string{"first", "second"}) ||
		!slices.ContainsFunc(got.Tools, func(s holdfast.ToolSpec) bool { return s.Name == "confirm" }) {
		t.Errorf("%q, tools %+v", texts, got.Tools)
	}
	if state := must(s.State(t.Context(), me, "t"))(t); string(state.State) != `{"color":"red"}` {
		t.Errorf("the shared state is %s", state.State)
	}
	// The policy reaches the decision: an unknown value is refused there.
	for _, err := range s.Run(t.Context(), me,
		server.Input{Thread: "t", Text: "x", Policy: holdfast.Policy{OnBusy: "maybe"}}) {
		if holdfast.AsError(err) == nil || holdfast.AsError(err).Code != codes.InvalidInput {
			t.Errorf("an unknown policy: %v", err)
		}
	}
	// A message in the middle is a branch only if the input says so.
	edited := server.Input{
		Thread: "t",
		Messages: []holdfast.Message{
			{ID: "m1", Role: holdfast.RoleUser, Text: "first"},
			{ID: "m9", Role: holdfast.RoleUser, Text: "other"},
		},
	}
	for _, err := range s.Run(t.Context(), me, edited) {
		if holdfast.AsError(err) == nil || holdfast.AsError(err).Code != codes.HistoryDiverged {
			t.Errorf("without Branch: %v", err)
		}
	}
	edited.Branch = true
	all(t, s.Run(t.Context(), me, edited))
}
