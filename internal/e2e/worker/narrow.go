package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/middleware"
)

// narrowBytes is how much the models of the agents narrow and teller take.
const narrowBytes = 24_000

// narrow has a model that takes little, a tool that returns much, and no middleware.
func (w *worker) narrow() holdfast.Agent {
	fetch := holdfast.NewTool("fetch", "Returns more than the model takes.",
		func(context.Context, struct{}) (string, error) {
			return strings.Repeat("0123456789", 10_000), nil
		})
	return holdfast.Agent{Name: "narrow", Model: holdfast.ModelFunc(w.takeLittle), Tools: []holdfast.Tool{fetch}}
}

// teller is narrow with summaries.
func (w *worker) teller() holdfast.Agent {
	a := w.narrow()
	a.Name = "teller"
	a.Middleware = []holdfast.Middleware{
		middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 30, Then: middleware.WindowSummarise}),
	}
	return a
}

// takeLittle is a model that refuses what is longer. It calls fetch if the person says so,
// and otherwise says how much it was shown.
func (w *worker) takeLittle(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		bytes := 0
		for _, m := range req.Messages {
			bytes += len(m.PlainText())
		}
		what := "answered"
		if bytes > narrowBytes {
			what = "refused"
		} else if req.Messages[0].ID == "summary" {
			what = "summarised"
		}
		w.note("asked thread=%s run=%s what=%s bytes=%d messages=%d cut=%q", req.Thread, req.Run, what, bytes,
			len(req.Messages), req.Cut)
		last := req.Messages[len(req.Messages)-1]
		switch {
		case what == "refused":
			yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.TooLong, Public: "It is too long."})
		case last.Role == holdfast.RoleUser && last.Text == "fetch":
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Name: "fetch", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		default:
			yield(
				holdfast.Delta{
					Text:   fmt.Sprintf("%d messages. %s", len(req.Messages), strings.Repeat("word ", 40)),
					Finish: holdfast.FinishStop,
				},
				nil,
			)
		}
	}
}
