package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/server"
)

// The first model breaks off each time that it is asked. Its answer is taken back, and the
// next one answers.
func ExampleAgent_fallbacks() {
	opus := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if yield(holdfast.Delta{Text: "The capital of Fra"}, nil) {
				yield(holdfast.Delta{},
					&holdfast.ModelError{Kind: failure.Cut, Retryable: true, Err: errors.New("connection reset")})
			}
		}
	})
	gpt := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Text: "Paris.", Finish: holdfast.FinishStop}, nil)
		}
	})
	agent := holdfast.Agent{
		Name:      "support",
		Model:     opus,
		Fallbacks: []holdfast.Model{gpt},
	}
	s, err := server.New(server.Config{
		Store:  "memory:",
		Agents: []holdfast.Agent{agent},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, who := context.Background(), server.LocalPrincipal()
	if err := s.StartEngine(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range s.Run(ctx, who, server.Input{Thread: "t", Text: "What is the capital of France?"}) {
		if err != nil {
			fmt.Println(err)
		}
		var custom struct{ Name string }
		if json.Unmarshal(event.JSON, &custom) == nil && event.Type == "CUSTOM" {
			fmt.Println(custom.Name)
		}
	}
	messages, err := s.Messages(ctx, who, "t")
	if err != nil {
		fmt.Println(err)
	}
	for _, m := range messages {
		var said struct{ Role, Content string }
		if err := json.Unmarshal(m, &said); err != nil {
			fmt.Println(err)
		}
		fmt.Println(said.Role, "says:", said.Content)
	}
	if err := s.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// holdfast.fallback
	// user says: What is the capital of France?
	// assistant says: Paris.
}
