// Command hello is a durable agent server with a tool of your own, in 40 lines.
package main

import (
	"context"
	"iter"
	"log"
	"os"
	"os/signal"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

type order struct {
	Item     string `json:"item" jsonschema:"what to order"`
	Quantity int    `json:"quantity"`
}

// place is started at most once for a call, whatever is killed in between.
func place(ctx context.Context, o order) (string, error) {
	key := holdfast.CallFrom(ctx).Key // hand it to your shop as its idempotency key
	return "ordered " + o.Item + " with key " + key, nil
}

// eager is a model that orders once and then reports what came of it.
func eager(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleTool {
			yield(holdfast.Delta{Text: "Done: " + last.Text, Finish: holdfast.FinishStop}, nil)
			return
		}
		call := &holdfast.CallDelta{Name: "place_order", Arguments: `{"item":"rope","quantity":2}`}
		yield(holdfast.Delta{Call: call, Finish: holdfast.FinishToolCalls}, nil)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tool := holdfast.NewTool("place_order", "Orders an item.", place, holdfast.WithEffect(holdfast.EffectOnce))
	agent := holdfast.Agent{Name: "shop", Model: holdfast.ModelFunc(eager), Tools: []holdfast.Tool{tool}}
	s, err := server.New(server.Config{Agents: []holdfast.Agent{agent}})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
