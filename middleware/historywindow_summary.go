package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// The notices of [HistoryWindow].
const (
	// NoticeSummarised says that a summary was made: of how many messages, and how
	// many bytes it has.
	NoticeSummarised = "holdfast.history_summarised"
	// NoticeSummaryFailed says that there is none: how many messages are not shown for
	// that reason, and why.
	NoticeSummaryFailed = "holdfast.summary_failed"
)

// noteSummary is an instruction, so it stands before the first message.
const noteSummary = "Summary of the first %d messages of this conversation:\n%s"

// HistoryWindowState is what a thread keeps of what the model is not shown.
type HistoryWindowState struct {
	// UpTo is the id of the last message that is in the summary.
	UpTo string `json:"upTo,omitempty"`
	Text string `json:"text,omitempty"`
	// Messages is how many messages of the history are in it.
	Messages int `json:"messages,omitempty"`
}

var historyWindowState = holdfast.RegisterState(holdfast.StateSpec[HistoryWindowState]{
	Name: "holdfast.history_window", Version: 1, Scope: holdfast.ScopeThread,
})

// summarising shows the model a summary of what does not fit.
func (w *window) summarising(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			s := &summaryCall{windowView: w.view(req.Messages), ctx: ctx, req: req, next: next, yield: yield}
			shown, err := s.request()
			switch {
			case s.stopped:
			case err != nil:
				yield(holdfast.Delta{}, err)
			default:
				s.answer(shown)
			}
		}
	}
}

// summaryCall is one model call before which a summary may be made.
type summaryCall struct {
	*windowView
	ctx     context.Context
	req     *holdfast.ModelRequest
	next    holdfast.ModelCall
	yield   func(holdfast.Delta, error) bool
	stopped bool
	// usage is what the summary took.
	usage *holdfast.Usage
}

// request is what the model is asked: with a summary, without one if all fits, and
// truncated if none can be made. An error ends the model call.
func (s *summaryCall) request() (*holdfast.ModelRequest, error) {
	have, known, err := s.summary()
	if err != nil {
		return nil, err
	}
	from := s.from()
	if from == 0 {
		return s.req, nil
	}
	if from > known && s.due(from, known) {
		made, err := s.renew(have, known, from)
		if err != nil || s.stopped {
			return nil, err
		}
		if made == nil {
			notes := append(have.note(), hiddenNote(s.hidden(known, from))...)
			return s.windowView.request(s.req, from, notes...), nil
		}
		have, known = *made, from
	}
	return s.windowView.request(s.req, known, have.note()...), nil
}

func (h HistoryWindowState) note() []string {
	if h.Text == "" {
		return nil
	}
	return []string{fmt.Sprintf(noteSummary, h.Messages, h.Text)}
}

// summary is the thread's summary and the place up to which it reaches. A summary of
// messages that are not in the history any more is dropped.
func (s *summaryCall) summary() (HistoryWindowState, int, error) {
	have, err := historyWindowState.Load(s.ctx)
	if err != nil || have.UpTo == "" {
		return have, 0, err
	}
	at := slices.IndexFunc(s.messages, func(m holdfast.Message) bool { return m.ID == have.UpTo })
	if at >= 0 {
		return have, at + 1, nil
	}
	have, err = historyWindowState.Update(s.ctx, func(HistoryWindowState) HistoryWindowState { return HistoryWindowState{} })
	return have, 0, err
}

// due reports whether so much stands beyond the window that a new summary is made.
func (s *summaryCall) due(from, known int) bool {
	_, bytes := s.size(known)
	return from-known >= s.SummaryEvery || s.MaxBytes > 0 && bytes > s.MaxBytes+s.MaxBytes/4
}

// renew makes a summary of the one there is and of the messages between two places,
// and keeps it. It returns nil if that failed. An error ends the model call.
func (s *summaryCall) renew(have HistoryWindowState, known, from int) (*HistoryWindowState, error) {
	text, err := s.ask(have, s.messages[known:from])
	if s.stopped {
		return nil, nil
	}
	if err != nil {
		if decides(err) || s.ctx.Err() != nil {
			return nil, err
		}
		s.notify(NoticeSummaryFailed, map[string]any{"messages": s.hidden(known, from), "reason": reasonOf(err)})
		return nil, nil
	}
	made, err := historyWindowState.Update(s.ctx, func(HistoryWindowState) HistoryWindowState {
		return HistoryWindowState{UpTo: s.messages[from-1].ID, Text: text, Messages: from}
	})
	if err == nil {
		s.notify(NoticeSummarised, map[string]any{"messages": made.Messages, "bytes": len(made.Text)})
	}
	return &made, err
}

// notify tells people. If nobody can be told, the run is about to be left.
func (s *summaryCall) notify(name string, value any) { _ = holdfast.Notify(s.ctx, name, value) }

// decides reports whether an error is a decision about the run, such as a budget's,
// and no mishap of the summary.
func decides(err error) bool {
	var ask *holdfast.Interrupt
	var end *holdfast.Error
	return errors.As(err, &ask) || errors.As(err, &end)
}

// reasonOf is why there is no summary, as far as people may know.
func reasonOf(err error) string {
	var failed *holdfast.ModelError
	switch {
	case errors.As(err, &failed) && failed.Public != "":
		return failed.Public
	case errors.Is(err, errNoSummary):
		return "The model's summary was empty or cut off."
	}
	return "The model failed."
}

var errNoSummary = errors.New("the summary is empty or cut off")

// maxSummary bounds what a thread keeps, in bytes.
const maxSummary = 16 << 10

// ask has the model write a summary. While it does, the reader gets empty deltas, so
// that a long summary is not taken for a silent model.
func (s *summaryCall) ask(have HistoryWindowState, messages []holdfast.Message) (string, error) {
	req := *s.req
	req.Instructions, req.Tools, req.Context = []string{s.SummaryPrompt}, nil, nil
	req.Messages = []holdfast.Message{{ID: "summary", Role: holdfast.RoleUser, Text: transcript(have.Text, messages)}}
	var text strings.Builder
	finish := holdfast.FinishReason("")
	for d, err := range s.next(s.ctx, &req) {
		if err != nil {
			return "", err
		}
		if d.Usage != nil {
			s.usage = d.Usage
		}
		text.WriteString(d.Text)
		if finish = d.Finish; finish != "" {
			break
		}
		if s.stopped = !s.yield(holdfast.Delta{}, nil); s.stopped {
			return "", nil
		}
	}
	said := strings.TrimSpace(text.String())
	if said == "" || finish != holdfast.FinishStop && finish != holdfast.FinishLength {
		return "", errNoSummary
	}
	return shortened(said, maxSummary), nil
}

// answer asks the model and adds what the summary took to what it reports.
func (s *summaryCall) answer(req *holdfast.ModelRequest) {
	if s.usage != nil && !s.yield(holdfast.Delta{Usage: s.usage}, nil) {
		return // it is reported first, so that it counts also if the answer fails
	}
	for d, err := range s.next(s.ctx, req) {
		if d.Usage != nil && s.usage != nil {
			d.Usage = addUsage(d.Usage, s.usage)
		}
		if !s.yield(d, err) || err != nil {
			return
		}
	}
}
