package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
)

// witness tells the test what happens in this process, in the order in which it happens: each
// word is answered before the process goes on.
type witness struct{ name, url string }

// tell tells the test something, and returns its answer's status.
func (w *witness) tell(what string) (status int) {
	res, err := http.PostForm(w.url, url.Values{"what": {what}, "process": {w.name}})
	if err != nil {
		panic(fmt.Sprintf("tell the test %q: %v", what, err))
	}
	res.Body.Close()
	return res.StatusCode
}

// observer tells of takeovers and of how runs end.
func (w *witness) observer() observe.Observer {
	return observe.Observer{
		TakenOver: func(_ holdfast.Iteration, result observe.TakeoverResult, _ string) {
			w.tell("takeover " + string(result))
		},
		RunEnded: func(_ holdfast.Iteration, outcome holdfast.Outcome, _ string, _ time.Duration) {
			w.tell("end " + string(outcome))
		},
	}
}

// late is an agent that calls the tool that the person names, and tells the test when the
// commit before that call is due and when the tool begins.
func (w *witness) late() holdfast.Agent {
	a := holdfast.Agent{
		Name: "late",
		Model: holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				last := req.Messages[len(req.Messages)-1]
				if last.Role != holdfast.RoleUser {
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
					return
				}
				// In one piece, so that the whole answer is in the commit that is under way next.
				w.tell("answered")
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: last.PlainText(), Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			}
		}),
	}
	for _, effect := range []holdfast.Effect{holdfast.EffectOnce, holdfast.EffectQuery, holdfast.EffectIdempotent} {
		option := holdfast.WithEffect(effect)
		if effect == holdfast.EffectQuery {
			option = holdfast.WithQuery(w.lookUp)
		}
		a.Tools = append(a.Tools, holdfast.NewTool(string(effect), "does something outside",
			func(context.Context, struct{}) (string, error) {
				w.tell("start")
				return "did it", nil
			}, option))
	}
	return a
}

// lookUp asks the test whether the tool has begun.
func (w *witness) lookUp(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
	if w.tell("look") == http.StatusNotFound {
		return holdfast.ToolResult{}, holdfast.FateNotDone, nil
	}
	return holdfast.ToolResult{Text: "did it"}, holdfast.FateDone, nil
}
