// Command hello is a durable agent server with a tool of its own, in 40 lines.
package main

import (
	"context"
	"iter"
	"log"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

type order struct {
	Item string `json:"item" jsonschema:"what to order"`
}

// place is started at most once per call; the call's key is the same after a crash.
func place(ctx context.Context, o order) (string, error) {
	return "ordered " + o.Item + " with key " + holdfast.CallFrom(ctx).Key, nil
}

// eager is a model that orders once and then reports the result.
func eager(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleTool {
			yield(holdfast.Delta{Text: "Done: " + last.Text, Finish: holdfast.FinishStop}, nil)
			return
		}
		call := &holdfast.CallDelta{Name: "place_order", Arguments: `{"item":"rope"}`}
		yield(holdfast.Delta{Call: call, Finish: holdfast.FinishToolCalls}, nil)
	}
}

func main() {
	model := holdfast.ModelFunc(eager)
	tool := holdfast.NewTool("place_order", "Orders an item.", place, holdfast.WithEffect(holdfast.EffectOnce))
	agent := holdfast.Agent{Name: "shop", Model: model, Tools: []holdfast.Tool{tool}}
	if err := server.ListenAndServe(server.Config{Agents: []holdfast.Agent{agent}}); err != nil {
		log.Fatal(err)
	}
}
