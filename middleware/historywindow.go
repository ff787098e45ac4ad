package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// What [HistoryWindow] does with the messages that it does not show.
const (
	// WindowTruncate leaves them out, and says how many they are.
	WindowTruncate = "truncate"
	// WindowSummarise has the model summarise them.
	WindowSummarise = "summarise"
)

// HistoryWindowOptions are the options of [HistoryWindow].
type HistoryWindowOptions struct {
	// MaxMessages and MaxBytes are how much of a conversation the model is shown. At
	// least one is set. Bytes are estimated: texts, arguments, results and data.
	MaxMessages int `json:"maxMessages,omitempty"`
	MaxBytes    int `json:"maxBytes,omitempty"`
	// KeepFirst is how many of the person's first messages are always shown; nil is
	// one. The person's last message is always shown.
	KeepFirst *int `json:"keepFirst,omitempty"`
	// Then is WindowTruncate, the default, or WindowSummarise.
	Then string `json:"then,omitempty"`
	// SummaryPrompt is the instruction by which the model summarises.
	SummaryPrompt string `json:"summaryPrompt,omitempty"`
	// SummaryEvery is how many messages may stand beyond the window, and are shown
	// all the same, before they become part of the summary; default 10. The summary
	// is so made anew now and then instead of before each model call.
	SummaryEvery int `json:"summaryEvery,omitempty"`
}

func (o HistoryWindowOptions) withDefaults() HistoryWindowOptions {
	if o.KeepFirst == nil {
		o.KeepFirst = new(1)
	}
	if o.Then == "" {
		o.Then = WindowTruncate
	}
	if o.SummaryPrompt == "" {
		o.SummaryPrompt = summaryPrompt
	}
	if o.SummaryEvery == 0 {
		o.SummaryEvery = 10
	}
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o HistoryWindowOptions) Validate() error {
	if o.Then != WindowSummarise && (o.SummaryPrompt != "" || o.SummaryEvery != 0) {
		return fmt.Errorf("summaryPrompt and summaryEvery are for summaries; add then: %s, or leave them out", WindowSummarise)
	}
	o = o.withDefaults()
	switch {
	case o.MaxMessages < 0 || o.MaxBytes < 0:
		return errors.New("maxMessages or maxBytes is negative; write how much the model is shown, or leave it out for no bound")
	case o.MaxMessages == 0 && o.MaxBytes == 0:
		return errors.New("nothing is bounded; set maxMessages, maxBytes or both")
	case *o.KeepFirst < 0:
		return errors.New("keepFirst is negative; write how many of the first messages are always shown, 0 for none")
	case o.Then != WindowTruncate && o.Then != WindowSummarise:
		return fmt.Errorf("then is %q; write %s or %s", o.Then, WindowTruncate, WindowSummarise)
	case o.SummaryEvery < 0:
		return errors.New("summaryEvery is negative; write after how many messages there is a new summary, 1 for each")
	}
	return nil
}

// HistoryWindow bounds how much of a conversation the model is shown. The history
// itself stays as it is. A tool call is never separated from its result.
//
// One of them in an agent is enough; two would share one summary.
func HistoryWindow(o HistoryWindowOptions) holdfast.Middleware {
	mustBeValid("HistoryWindow", o)
	w := &window{o.withDefaults()}
	m := holdfast.Middleware{Name: "holdfast.history_window", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
		return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return next(ctx, w.truncated(req))
		}
	}}
	if w.Then == WindowSummarise {
		m.Model = w.summarising
		m.States = []holdfast.AnyState{historyWindowState}
	}
	return m
}

// window shows a part of a history.
type window struct{ HistoryWindowOptions }

// noteHidden says that something is left out; the number is how many messages.
const noteHidden = "The conversation before this point is not shown: %d messages."

func (w *window) truncated(req *holdfast.ModelRequest) *holdfast.ModelRequest {
	v := w.view(req.Messages)
	from := v.from()
	if from == 0 {
		return req
	}
	return v.request(req, from, hiddenNote(v.hidden(0, from))...)
}

func hiddenNote(hidden int) []string {
	if hidden == 0 {
		return nil
	}
	return []string{fmt.Sprintf(noteHidden, hidden)}
}
