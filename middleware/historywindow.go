package middleware

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// HistoryWindow bounds how much of a conversation the model is shown. The history itself
// does not change. A tool call is never separated from its result.
//
// An agent should have only one: two would share one summary.
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
		m.States = []holdfast.State{historyWindowState}
		m.Notices = []string{NoticeSummarised, NoticeSummaryFailed}
	}
	return m
}

func (w *window) truncated(req *holdfast.ModelRequest) *holdfast.ModelRequest {
	v := w.view(req.Messages)
	from := v.from()
	if from == 0 {
		return req
	}
	return v.request(req, from, hiddenNote(v.hidden(0, from))...)
}
