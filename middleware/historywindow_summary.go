package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// Before a model call whose history does not fit, the same model is asked for a summary of
// what is left out. The summary is a state of the thread. It is extended when enough
// messages have left the window, and dropped when the thread goes back to before it. If the
// model fails to write one, the call goes ahead with less history: a summary is never a
// reason for a run to fail.

// The notices of [HistoryWindow].
const (
	// NoticeSummarised is the notice of a new summary: how many messages it covers, and its
	// length in bytes.
	NoticeSummarised = "holdfast.history_summarised"
	// NoticeSummaryFailed is the notice of a summary that could not be made: how many
	// messages are therefore not shown, and why.
	NoticeSummaryFailed = "holdfast.summary_failed"
)

// noteSummary is an instruction, so that it precedes all messages.
const noteSummary = "Summary of the first %d messages of this conversation:\n%s"

// HistoryWindowState is what [HistoryWindow] remembers in a thread: a summary of the
// messages that the model is not shown.
type HistoryWindowState struct {
	// UpTo is the id of the last message that the summary covers.
	UpTo string `json:"upTo,omitempty"`
	// Text is the summary.
	Text string `json:"text,omitempty"`
	// Messages is how many messages the summary covers.
	Messages int `json:"messages,omitempty"`
}

var historyWindowState = state.Register(state.Spec[HistoryWindowState]{
	Name: "holdfast.history_window", Version: 1, Scope: state.ScopeThread,
	Validate: func(s HistoryWindowState) error { return notNegative("messages", s.Messages) },
})

// summarising is the Model hook that replaces what does not fit by a summary.
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

// summaryCall is a model call that may need a summary first.
type summaryCall struct {
	*windowView
	ctx     context.Context
	req     *holdfast.ModelRequest
	next    holdfast.ModelCall
	yield   func(holdfast.Delta, error) bool
	stopped bool // the reader wants no more
	// usage is what the summary used; nil if there was none.
	usage *holdfast.Usage
}

// request returns what to ask the model: everything if it fits, otherwise with a summary,
// or truncated if there is none. An error ends the model call.
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

// summary returns the thread's summary and the index after the last message it covers. A
// summary of messages that are no longer in the history is dropped.
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

// due reports whether enough messages have left the window for a new summary.
func (s *summaryCall) due(from, known int) bool {
	_, bytes := s.size(known)
	return from-known >= s.SummaryEvery || s.MaxBytes > 0 && bytes > s.MaxBytes+s.MaxBytes/4
}

// renew makes a new summary from the present one and the messages between two indices, and
// stores it. It returns nil if the model failed to write one. An error ends the model call.
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

// notify sends a notice. An error is ignored: the run is about to stop.
func (s *summaryCall) notify(name string, value any) { _ = holdfast.Notify(s.ctx, name, value) }

// decides reports whether an error is a decision about the run, such as that of a budget,
// rather than a failure to summarise.
func decides(err error) bool {
	var ask *holdfast.Interrupt
	var end *holdfast.Error
	return errors.As(err, &ask) || errors.As(err, &end)
}

// reasonOf returns why there is no summary, in words that people may see.
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

// maxSummary bounds the summary that a thread keeps, in bytes.
const maxSummary = 16 << 10

// ask asks the model for a summary. Meanwhile the reader gets empty deltas, so that a model
// that writes a long summary is not taken for a silent one.
func (s *summaryCall) ask(have HistoryWindowState, messages []holdfast.Message) (string, error) {
	req := *s.req
	req.Instructions, req.Tools, req.Context = []string{s.SummaryPrompt}, nil, nil
	req.ClientInstructions = nil
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

// answer asks the model and adds what the summary used to the usage that it reports.
func (s *summaryCall) answer(req *holdfast.ModelRequest) {
	if s.usage != nil && !s.yield(holdfast.Delta{Usage: s.usage}, nil) {
		return // reported first, so that it counts even if the answer fails
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
