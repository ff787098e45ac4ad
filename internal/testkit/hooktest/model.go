package hooktest

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// Says is a model call that yields the deltas.
func Says(deltas ...holdfast.Delta) holdfast.ModelCall { return Breaking(nil, deltas...) }

// Costing is a model call that reports its usage with the end of its answer.
func Costing(u *holdfast.Usage) holdfast.ModelCall {
	return Says(holdfast.Delta{Text: "x"}, holdfast.Delta{Usage: u, Finish: holdfast.FinishStop})
}

// Breaking is a model call that yields the deltas and then the error.
func Breaking(err error, deltas ...holdfast.Delta) holdfast.ModelCall {
	return func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
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
	}
}

// Usage is what the model p/m reports.
func Usage(input, output int64) *holdfast.Usage {
	return &holdfast.Usage{Provider: "p", Model: "m", InputTokens: &input, OutputTokens: &output}
}

// Scripted is a model that answers each request with what the function returns.
func Scripted(f func(req *holdfast.ModelRequest) []holdfast.Delta) holdfast.Model {
	return holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return Says(f(req)...)(ctx, req)
	})
}

// CallThenSay is a model that calls the tool once for each message of the person, and
// then repeats the result.
func CallThenSay(tool string) holdfast.Model {
	return Scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == holdfast.RoleTool {
			return []holdfast.Delta{{Text: "Got: "}, {Text: last.Text}, {Finish: holdfast.FinishStop}}
		}
		return []holdfast.Delta{
			{Call: &holdfast.CallDelta{Name: tool, Arguments: "{}"}, Finish: holdfast.FinishToolCalls},
		}
	})
}
