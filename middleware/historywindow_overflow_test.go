package middleware_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Conversations that are too long for the model.

// small is a model that takes only so many bytes, and the server's part: it asks once more
// when the conversation is too long.
type small struct {
	*hooktest.Run
	name  string
	o     middleware.HistoryWindowOptions
	bytes int
	// summarises: it summarises whatever it gets.
	summarises bool
	// used is what the last answer has reported.
	used *holdfast.Usage
	// requests are those that were answered, and refused counts the others.
	requests []*holdfast.ModelRequest
	refused  int
}

func newSmall(t *testing.T, bytes int, o middleware.HistoryWindowOptions) *small {
	return &small{Run: hooktest.New(t), name: "p/m", o: o, bytes: bytes}
}

var errOverflow = &holdfast.ModelError{Kind: failure.TooLong, Public: "Too long."}

func (s *small) call(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	size := 0
	for _, m := range req.Messages {
		size += len(m.Text)
	}
	summary := req.Messages[0].ID == "summary"
	if size > s.bytes && !(summary && s.summarises) {
		s.refused++
		return hooktest.Breaking(errOverflow)(nil, nil)
	}
	if !summary {
		s.requests = append(s.requests, req)
	}
	return hooktest.Says(holdfast.Delta{Text: "They talked.", Finish: holdfast.FinishStop,
		Usage: hooktest.Usage(1, 1)})(nil, nil)
}

// ask asks for an answer to a history.
func (s *small) ask(history []holdfast.Message) (shown string, err error) {
	s.History.Set(history)
	for overflows := range 2 {
		if shown, err = s.try(history, overflows, overflows); !errors.Is(err, errOverflow) {
			break
		}
	}
	return shown, err
}

// try makes one call, on a server of its own.
func (s *small) try(history []holdfast.Message, attempt, overflows int) (shown string, err error) {
	model := middleware.HistoryWindow(s.o).Model(s.call)
	req := &holdfast.ModelRequest{
		Run:       s.At.Run,
		Model:     s.name,
		Messages:  history,
		Attempt:   attempt,
		Overflows: overflows,
	}
	for d, err := range model(s.Context(), req) {
		if err != nil {
			return "", err
		}
		s.used = d.Usage
	}
	return ids(s.requests[len(s.requests)-1].Messages), nil
}

var onlyOverflow = middleware.HistoryWindowOptions{OnOverflow: middleware.WindowShrink}

// TestAnOverflowIsAnswered: with at most half of what was shown. The smaller bound is
// remembered, so the next calls do not try what has failed.
func TestAnOverflowIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 100, onlyOverflow)
	history := shape(strings.Repeat("ua", 20) + "u") // 8 bytes each
	shown, err := s.ask(history[:11])
	if err != nil || shown != ids(history[:11]) || s.refused != 0 || s.requests[0].Cut != "" {
		t.Errorf("what fits is not shown: %s, %v", shown, err)
	}
	shown, err = s.ask(history[:13])
	if err != nil || shown != "u0 u8 a9 u10 a11 u12" || s.refused != 1 || s.requests[1].Cut != "window" {
		t.Errorf("shown is %s, %v", shown, err)
	}
	s.WantNotices(`holdfast.history_cut {"messages":7,"reason":"too_long"}`)
	want := `holdfast.cut {"from":"u0","to":"a7","messages":8,"shown":["u0"],"reason":"too_long","model":"p/m",` +
		`"maxBytes":78,"run":"r1","attempt":1,"overflows":1}`
	if got := s.History.Activities; len(got) != 1 || got[0] != want {
		t.Errorf("recorded is %q", got)
	}
	for n := 15; n <= len(history); n += 2 {
		if _, err := s.ask(history[:n]); err != nil {
			t.Fatal(err)
		}
	}
	if s.refused != 1 || len(s.History.Activities) < 4 ||
		!strings.Contains(s.History.Activities[1], `"reason":"window","model":"p/m","maxBytes":78}`) {
		t.Errorf("%d calls were refused, recorded is %q", s.refused, s.History.Activities)
	}
}

// TestAVeryLongConversation: as much is left out as it takes, within one answer.
func TestAVeryLongConversation(t *testing.T) {
	t.Parallel()
	for _, then := range []string{middleware.WindowTruncate, middleware.WindowSummarise} {
		o := onlyOverflow
		o.Then = then
		s := newSmall(t, 2000, o)
		history := shape(strings.Repeat("uaurctuauCttrcta", 75))
		for i := range history {
			history[i].Text = strings.Repeat("some words ", 8)
		}
		turns := 0
		for n := 1000; n < len(history); n++ {
			if history[n-1].Role != holdfast.RoleUser {
				continue
			}
			turns++
			if _, err := s.ask(history[:n]); err != nil {
				t.Fatalf("%s, turn %d: %v", then, turns, err)
			}
		}
		// The first call halves again and again, and each time the summary may be too long too.
		if turns < 40 || s.refused > 30 {
			t.Errorf("%s: %d turns, %d calls were refused", then, turns, s.refused)
		}
		if summaries := strings.Count(strings.Join(s.History.Activities, " "),
			middleware.ActivitySummary); (summaries > 0) != (then == middleware.WindowSummarise) {
			t.Errorf("%s: %d summaries", then, summaries)
		}
	}
}

// TestSeveralSummariesForOneAnswer: each of them counts.
func TestSeveralSummariesForOneAnswer(t *testing.T) {
	t.Parallel()
	o := onlyOverflow
	o.Then = middleware.WindowSummarise
	s := newSmall(t, 100, o)
	s.summarises = true
	history := shape(strings.Repeat("ua", 40) + "u")
	if _, err := s.ask(history); err != nil || *s.used.InputTokens != 4 || s.requests[0].Cut != "summary" {
		t.Errorf("%v, the answer has used %+v", err, s.used)
	}
	if got := s.History.Activities; len(got) != 3 || !strings.Contains(got[2], `"messages":72,`) {
		t.Errorf("recorded is %q", got)
	}
}

// TestALongTranscript: what is to be summarised may be too long itself. Then the model is
// shown the newest part of it.
func TestALongTranscript(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 3000, middleware.HistoryWindowOptions{MaxMessages: 10, Then: middleware.WindowSummarise})
	history := shape(strings.Repeat("ua", 600) + "u")
	if _, err := s.ask(history); err != nil || s.refused != 3 || s.requests[0].Cut != "summary" {
		t.Errorf("%v after %d", err, s.refused)
	}
	s = newSmall(t, 500, middleware.HistoryWindowOptions{MaxMessages: 10, Then: middleware.WindowSummarise})
	if _, err := s.ask(history); err != nil || s.refused != 6 || s.requests[0].Cut != "window" {
		t.Errorf("%v after %d", err, s.refused)
	}
}

// TestWhatHasToBeShown: the person's first messages give way, the last one and open work
// do not. If even that is too long, people are told so, and the model is not asked again.
func TestWhatHasToBeShown(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 100, onlyOverflow)
	history := shape("uauauaCtt")
	history[0].Text = strings.Repeat("x", 300)
	if shown, err := s.ask(history); err != nil || shown != "u2 a3 u4 a5 C6 t7 t8" {
		t.Errorf("shown is %s, %v", shown, err)
	}
	if want := `"to":"a1","messages":2,"reason"`; !strings.Contains(s.History.Activities[0], want) {
		t.Errorf("recorded is %q", s.History.Activities)
	}
	history = shape("uauauaCttuauauauauauauauau")
	history[0].Text = strings.Repeat("x", 300)
	if shown, err := s.ask(history); err != nil || strings.HasPrefix(shown, "u0 ") {
		t.Errorf("after another step shown is %s, %v", shown, err)
	}

	s = newSmall(t, 100, onlyOverflow)
	history = shape("uauauau")
	history[6].Text = strings.Repeat("x", 300)
	_, err := s.ask(history)
	var failed *holdfast.ModelError
	if !errors.As(err, &failed) || failed.Kind != failure.TooLong || failed.Retryable ||
		!strings.Contains(failed.Public, "Send a shorter one") {
		t.Errorf("the error is %v", err)
	}
	if s.refused > 4 {
		t.Errorf("the model was asked %d times", s.refused)
	}
	history = shape("u")
	history[0].Text = strings.Repeat("x", 300)
	if _, err := s.ask(history); !errors.As(err, &failed) || !strings.Contains(failed.Public, "Send a shorter one") {
		t.Errorf("one message: %v", err)
	}
}

// TestWhatIsNotAnOverflow: other errors, an answer that has begun, and a window that is to
// fail.
func TestWhatIsNotAnOverflow(t *testing.T) {
	t.Parallel()
	history := shape(strings.Repeat("ua", 10) + "u")
	s := newSmall(t, 100, middleware.HistoryWindowOptions{MaxMessages: 50, OnOverflow: middleware.WindowFail})
	if _, err := s.ask(history); !errors.Is(err, errOverflow) || s.refused != 2 || len(s.History.Activities) != 0 {
		t.Errorf("a window that is to fail: %v after %d", err, s.refused)
	}
	if m := middleware.HistoryWindow(middleware.HistoryWindowOptions{OnOverflow: middleware.WindowFail}); m.Model !=
		nil || m.Notices != nil {
		t.Errorf("a window that does nothing has hooks: %+v", m)
	}
	for name, model := range map[string]holdfast.ModelCall{
		"another error": hooktest.Breaking(&holdfast.ModelError{Kind: failure.Invalid}),
		"half answered": hooktest.Breaking(errOverflow, holdfast.Delta{Text: "yes"}),
	} {
		run := hooktest.New(t)
		run.History.Set(history)
		calls := 0
		m := middleware.HistoryWindow(onlyOverflow).
			Model(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				calls++
				return model(ctx, req)
			})
		var failed error
		for _, err := range m(run.Context(), &holdfast.ModelRequest{Messages: history, Overflows: 1}) {
			failed = err
		}
		if failed == nil || calls != 1 {
			t.Errorf("%s: %v after %d calls", name, failed, calls)
		}
	}
}

// TestAnOverflowIsAnsweredOnce: another attempt at the same answer, after an error of
// another kind or in another process, shows what was decided.
func TestAnOverflowIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 100, onlyOverflow)
	history := shape(strings.Repeat("ua", 10) + "u")
	s.History.Set(history)
	var shown [3]string
	for i, tries := range [][2]int{{1, 1}, {2, 1}, {0, 0}} { // attempt, overflows
		shown[i], _ = s.try(history, tries[0], tries[1])
	}
	if shown[0] != shown[1] || shown[1] != shown[2] || len(s.History.Activities) != 1 || s.requests[1].Cut != "" {
		t.Errorf("shown were %q, recorded is %q", shown, s.History.Activities)
	}
	// It is still too long, for the process that has taken over: half of that.
	if less, err := s.try(history, 1, 1); err != nil || len(less) >= len(shown[0]) || len(s.History.Activities) != 2 {
		t.Errorf("%s, %v, recorded is %q", less, err, s.History.Activities)
	}
	// The next answer may be too long again.
	history = shape(strings.Repeat("ua", 13) + "u")
	s.History.Set(history)
	if _, err := s.try(history, 5, 1); err != nil || len(s.History.Activities) != 3 {
		t.Errorf("%v, recorded is %q", err, s.History.Activities)
	}
}

// TestAnotherModelTakesMore: what was too long for one model is not left out for another.
func TestAnotherModelTakesMore(t *testing.T) {
	t.Parallel()
	history := shape(strings.Repeat("ua", 10) + "u")
	s := newSmall(t, 100, onlyOverflow)
	if _, err := s.ask(history); err != nil {
		t.Fatal(err)
	}
	s.name, s.bytes = "p/larger", 1000
	if shown, err := s.ask(history); err != nil || shown != ids(history) || s.refused != 1 {
		t.Errorf("another model is shown %s, %v", shown, err)
	}
	s.name, s.bytes = "p/m", 100
	if shown, err := s.ask(history); err != nil || shown == ids(history) || s.refused != 1 {
		t.Errorf("the first one is shown %s, %v", shown, err)
	}
	// A bound of the window is one for all models.
	s = newSmall(t, 1000, middleware.HistoryWindowOptions{MaxMessages: 10})
	first, err := s.ask(history)
	s.name = "p/larger"
	if second, err2 := s.ask(history); err != nil || err2 != nil || first != second || len(s.History.Activities) != 1 {
		t.Errorf("shown are %s and %s, %v, %v", first, second, err, err2)
	}
}

// TestAModelKeepsItsBound: also if what was left out last was so for all models, as at a step
// of another one.
func TestAModelKeepsItsBound(t *testing.T) {
	t.Parallel()
	for _, then := range []string{middleware.WindowTruncate, middleware.WindowSummarise} {
		history := shape(strings.Repeat("ua", 31) + "u")
		s := newSmall(t, 130, middleware.HistoryWindowOptions{MaxMessages: 40, Then: then})
		s.summarises = true
		if _, err := s.ask(history[:21]); err != nil || s.refused != 1 {
			t.Fatalf("%s: %v after %d", then, err, s.refused)
		}
		s.name, s.bytes = "p/larger", 1000
		if _, err := s.ask(history[:55]); err != nil || s.refused != 1 ||
			strings.Contains(s.History.Activities[len(s.History.Activities)-1], `"model"`) {
			t.Errorf("%s: %v after %d, recorded is %q", then, err, s.refused, s.History.Activities)
		}
		s.name, s.bytes = "p/m", 130
		if _, err := s.ask(history); err != nil || s.refused != 1 {
			t.Errorf("%s: the smaller model: %v after %d, recorded is %q", then, err, s.refused, s.History.Activities)
		}
	}
}

// TestAReaderThatStopsAtACut: after that nothing is asked.
func TestAReaderThatStopsAtACut(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 100, onlyOverflow)
	history := shape(strings.Repeat("ua", 10) + "u")
	s.History.Set(history)
	for range middleware.HistoryWindow(onlyOverflow).Model(s.call)(s.Context(),
		&holdfast.ModelRequest{Messages: history, Overflows: 1}) {
		break
	}
	if len(s.requests) != 0 || len(s.History.Activities) != 1 {
		t.Errorf("%d requests, recorded is %q", len(s.requests), s.History.Activities)
	}
}
