package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/state"
)

// Summaries with a scripted model: when one is made, what it is made of, and what happens
// when it cannot be made.

// summarising is a run with a window of four messages and a model whose summaries the
// test decides.
type summarising struct {
	t        *testing.T
	ctx      context.Context
	m        holdfast.Middleware
	states   *state.Live
	history  hooktest.History
	notices  []string
	requests []*holdfast.ModelRequest // for summaries
	summary  []holdfast.Delta
	fails    error
	answer   []holdfast.Delta
	got      []holdfast.Delta
}

func newSummarising(t *testing.T, o middleware.HistoryWindowOptions) *summarising {
	o.Then, o.MaxMessages = middleware.WindowSummarise, 4
	if o.SummaryEvery == 0 {
		o.SummaryEvery = 2
	}
	s := &summarising{t: t, m: middleware.HistoryWindow(o), states: state.NewLive(nil)}
	s.summary = []holdfast.Delta{
		{Text: "They "},
		{Text: "talked."},
		{Finish: holdfast.FinishStop, Usage: hooktest.Usage(100, 10)},
	}
	s.answer = []holdfast.Delta{{Text: "yes"}, {Finish: holdfast.FinishStop, Usage: hooktest.Usage(5, 1)}}
	s.ctx = holdfast.ContextWithRun(state.ContextWith(t.Context(), s.states),
		&holdfast.RunContext{Notify: func(_ context.Context, name string, value any) error {
			b, err := json.Marshal(value)
			s.notices = append(s.notices, name+" "+string(b))
			return err
		}, Record: s.history.Record, History: s.history.Messages})
	return s
}

// ask asks the model with a history and returns the request that it gets; nil if it gets
// none.
func (s *summarising) ask(form string) (*holdfast.ModelRequest, error) {
	return s.askWith(shape(form))
}

func (s *summarising) askWith(history []holdfast.Message) (answered *holdfast.ModelRequest, failed error) {
	s.got = nil
	s.history.Set(history)
	model := s.m.Model(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		deltas, err := s.answer, error(nil)
		if len(req.Tools) == 0 {
			s.requests = append(s.requests, req)
			deltas, err = s.summary, s.fails
		} else {
			answered = req
		}
		return func(yield func(holdfast.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
			if err != nil {
				yield(holdfast.Delta{}, err)
			}
		}
	})
	req := &holdfast.ModelRequest{
		Instructions: []string{"be kind"},
		Messages:     history,
		Tools:        []holdfast.ToolSpec{{Name: "f"}},
		Context:      []holdfast.ContextItem{{}},
		Output:       &holdfast.Output{Name: "answer"},
	}
	for d, err := range model(s.ctx, req) {
		if err != nil {
			return answered, err
		}
		s.got = append(s.got, d)
	}
	return answered, nil
}

// shows asks the model and checks what it is shown.
func (s *summarising) shows(form, messages string, notes ...string) {
	s.t.Helper()
	req, err := s.ask(form)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := ids(req.Messages); got != messages {
		s.t.Errorf("%s: shown are %s, want %s", form, got, messages)
	}
	if got, want := strings.Join(req.Instructions, "|"),
		strings.Join(append([]string{"be kind"}, notes...), "|"); got != want {
		s.t.Errorf("%s: the instructions are %q, want %q", form, got, want)
	}
}

const firstSummary = "Summary of the first 6 messages of this conversation:\nThey talked."

// TestHistoryIsSummarised: once for several messages, with the old summary in the new
// one.
func TestHistoryIsSummarised(t *testing.T) {
	t.Parallel()
	s := newSummarising(t, middleware.HistoryWindowOptions{SummaryEvery: 4})
	s.shows("uaua", "u0 a1 u2 a3")
	s.shows("uauau", "u0 a1 u2 a3 u4") // not yet worth it
	s.shows("uauauau", "u0 u6", firstSummary)
	s.shows("uauauaua", "u0 u6 a7", firstSummary)
	s.shows("uauauauaua", "u0 u6 a7 u8 a9", firstSummary)
	if len(s.requests) != 1 {
		t.Fatalf("%d summaries were made", len(s.requests))
	}
	req := s.requests[0]
	want := "The conversation:\nuser: text 000\nassistant: text 001\nuser: text 002\nassistant: text 003\nuser: text " +
		"004\nassistant: text 005\n"
	if len(req.Messages) != 1 || req.Messages[0].Text != want {
		t.Errorf("summarised is %q", req.Messages[0].Text)
	}
	if len(req.Tools) != 0 || len(req.Context) != 0 || req.Output != nil || len(req.Instructions) != 1 ||
		!strings.Contains(req.Instructions[0], "You write the memory") {
		t.Errorf("got %+v", req)
	}
	if want := `holdfast.history_summarised {"bytes":12,"messages":6}`; len(s.notices) != 1 || s.notices[0] != want {
		t.Errorf("notices %q", s.notices)
	}
	want = `holdfast.summary {"from":"u0","to":"a5","messages":6,"shown":["u0"],"text":"They talked."}`
	if got := s.history.Activities; len(got) != 1 || got[0] != want {
		t.Errorf("recorded is %q", got)
	}
	if b, err := json.Marshal(s.states.Now()); err != nil || strings.Contains(string(b), "talked") {
		t.Errorf("state %s, %v", b, err)
	}
	s.summary[1].Text = "ate."
	s.shows("uauauauauauau", "u0 u12", "Summary of the first 12 messages of this conversation:\nThey ate.")
	if text := s.requests[1].Messages[0].Text; !strings.HasPrefix(text,
		"Summary of what came before:\nThey talked.\n\nThe conversation:\nuser: text 006\n") {
		t.Errorf("summarised is %q", text)
	}
}

// TestSummaryUsageCounts: before the answer, and in each report of the answer.
func TestSummaryUsageCounts(t *testing.T) {
	t.Parallel()
	s := newSummarising(t, middleware.HistoryWindowOptions{SummaryPrompt: "Be short."})
	cached := int64(3)
	s.answer[1].Usage.CachedInput, s.answer[1].Usage.OutputTokens = &cached, nil
	s.shows("uauauau", "u0 u6", firstSummary)
	var reports []string
	for _, d := range s.got {
		if d.Usage != nil {
			b, _ := json.Marshal(d.Usage)
			reports = append(reports, string(b))
		}
	}
	want := `{"provider":"p","model":"m","inputTokens":100,"outputTokens":10} ` +
		`{"provider":"p","model":"m","inputTokens":105,"outputTokens":10,"cachedInputTokens":3}`
	if strings.Join(reports, " ") != want {
		t.Errorf("got %s", reports)
	}
	if s.requests[0].Instructions[0] != "Be short." {
		t.Errorf("the prompt is %q", s.requests[0].Instructions)
	}
}

// TestSummaryAfterARewind: a summary of messages that are gone is dropped.
func TestSummaryAfterARewind(t *testing.T) {
	t.Parallel()
	s := newSummarising(t, middleware.HistoryWindowOptions{})
	s.shows("uauauau", "u0 u6", firstSummary)
	s.shows("uau", "u0 a1 u2")
	// A window that has become larger shows everything, or everything after the summary.
	s.shows("uauauau", "u0 u6", firstSummary)
	s.m = middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 6, Then: middleware.WindowSummarise})
	s.shows("uauauau", "u0 u6", firstSummary)
	s.shows("uauau", "u0 a1 u2 a3 u4")
	// A summary of messages that the agent may not show to its model is not used.
	history := shape("uauauau")
	history[5].ID = "other"
	if req, err := s.askWith(history); err != nil || len(req.Messages) != 7 {
		t.Errorf("shown are %v, %v", req, err)
	}
}

// TestSummaryFails: the model is asked anyway, with less history, and people are told.
func TestSummaryFails(t *testing.T) {
	t.Parallel()
	hidden := "The conversation before this point is not shown: 5 messages."
	for reason, change := range map[string]func(*summarising){
		"The model failed.": func(s *summarising) { s.fails, s.summary = errors.New("secret"), nil },
		"Too busy.": func(s *summarising) {
			s.fails, s.summary = &holdfast.ModelError{Public: "Too busy."},
				nil
		},
		"The model's summary was empty or cut off.": func(s *summarising) { s.summary = s.summary[2:] },
	} {
		s := newSummarising(t, middleware.HistoryWindowOptions{})
		change(s)
		s.shows("uauauau", "u0 u6", hidden)
		want := fmt.Sprintf(`holdfast.summary_failed {"messages":5,"reason":%q} holdfast.history_cut `+
			`{"messages":5,"reason":"window"}`, reason)
		if strings.Join(s.notices, " ") != want {
			t.Errorf("notices %q, want %s", s.notices, want)
		}
	}
	s := newSummarising(t, middleware.HistoryWindowOptions{})
	s.summary = s.summary[:2] // cut off
	s.shows("uauauau", "u0 u6", hidden)
	s.shows("uauauaua", "u0 u6 a7", hidden)                                      // it is tried again
	s.summary = append(s.summary, holdfast.Delta{Finish: holdfast.FinishLength}) // as long as it may be
	s.shows("uauauauau", "u0 u6 a7 u8", firstSummary)
	s.summary = nil
	s.shows("uauauauauau", "u0 u10", firstSummary, "The conversation before this point is not shown: 4 messages.")
	s.shows("uauauauauau", "u0 u10", firstSummary, "The conversation before this point is not shown: 4 messages.")
	if got := strings.Join(s.history.Activities, " "); strings.Count(got, "holdfast.cut") != 2 ||
		strings.Count(got, "holdfast.summary") != 1 {
		t.Errorf("recorded is %s", got)
	}
}

// TestSummaryThatEndsTheRun: the decision of a budget is not a failure to summarise.
func TestSummaryThatEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, decision := range []error{holdfast.Errorf(codes.BudgetExceeded, "No money."),
		&holdfast.Interrupt{Message: "More?"}} {
		s := newSummarising(t, middleware.HistoryWindowOptions{})
		s.summary, s.fails = nil, decision
		if req, err := s.ask("uauauau"); req != nil || !errors.Is(err, decision) || s.notices != nil {
			t.Errorf("got %v, %v", req, err)
		}
	}
	s := newSummarising(t, middleware.HistoryWindowOptions{})
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.ctx, s.summary, s.fails = ctx, nil, context.Canceled
	if req, err := s.ask("uauauau"); req != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", req, err)
	}
}

// TestSummaryOfAReaderThatStops: after that nothing is asked.
func TestSummaryOfAReaderThatStops(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		s := newSummarising(t, middleware.HistoryWindowOptions{})
		answers := 0
		model := s.m.Model(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			deltas := s.summary
			if len(req.Tools) > 0 {
				answers++
				deltas = s.answer
			}
			return func(yield func(holdfast.Delta, error) bool) {
				for _, d := range deltas {
					if !yield(d, nil) {
						return
					}
				}
			}
		})
		read := 0
		for range model(s.ctx, &holdfast.ModelRequest{Messages: shape("uauauau"), Tools: []holdfast.ToolSpec{{}}}) {
			if read++; read == n {
				break
			}
		}
		if want := max(0, n-3); answers != want {
			t.Errorf("stopped at %d: the model answered %d times", n, answers)
		}
	}
}

// TestWhatASummaryIsMadeOf: calls and results as text, media by name, and nothing too
// long.
func TestWhatASummaryIsMadeOf(t *testing.T) {
	t.Parallel()
	s := newSummarising(t, middleware.HistoryWindowOptions{})
	history := shape("uaurctuau")
	history[0].Parts = []holdfast.Part{
		{Type: holdfast.PartText, Text: "look:"},
		{Type: holdfast.PartImage, Source: &holdfast.Source{}},
	}
	history[1].Text = "x" + strings.Repeat("é", 4000)
	history[5].Text, history[5].Error = "", "it failed"
	history[4].Text = ""
	if _, err := s.askWith(history); err != nil {
		t.Fatal(err)
	}
	want := "The conversation:\nuser: look: [image]\nassistant: x" + strings.Repeat("é", 2047) + "…\nuser: text 002\n" +
		"assistant calls f (call4.0): {}\nresult of call4.0: it failed\nuser: text 006\nassistant: text 007\n"
	if got := s.requests[0].Messages[0].Text; got != want {
		t.Errorf("got %q", got)
	}
	s = newSummarising(t, middleware.HistoryWindowOptions{})
	history = shape(strings.Repeat("ua", 50) + "u")
	for i := range history {
		history[i].Text = strings.Repeat("x", 5000)
	}
	s.summary[0].Text = strings.Repeat("é", 10000)
	req, err := s.askWith(history)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.requests[0].Messages[0].Text; len(got) > 257<<10 ||
		!strings.Contains(got, "[37 older messages are left out.]\n") {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
	if got := req.Instructions[1]; len(got) > 17<<10 || !strings.HasSuffix(got, "é…") {
		t.Errorf("a summary of %d bytes is kept", len(got))
	}
}

// TestSummaryByBytes: long texts are summarised before there are many messages.
func TestSummaryByBytes(t *testing.T) {
	t.Parallel()
	s := newSummarising(t, middleware.HistoryWindowOptions{})
	s.m = middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxBytes: 40, Then: middleware.WindowSummarise})
	s.shows("uauau", "u0 a1 u2 a3 u4")
	s.shows("uauaua", "u0 a1 u2 a3 u4 a5") // a little more is no reason
	s.shows("uauauau", "u0 u6", firstSummary)
}
