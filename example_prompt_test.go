package holdfast_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// This file has the code that docs/prompt-cache.md shows.

func clock(now func() time.Time) holdfast.Middleware {
	return holdfast.Middleware{Name: "acme.clock", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
		return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			late := *req
			note := holdfast.Message{
				ID:   "acme.clock",
				Role: holdfast.RoleUser,
				Text: "It is " + now().Format(time.RFC1123) + ".",
			}
			late.Messages, late.Tail = append(slices.Clip(req.Messages), note), req.Tail+1
			return next(ctx, &late)
		}
	}}
}

// Text that changes with each request stands last and is counted, so that the history before
// it can be in the provider's cache.
func ExampleModelRequest_History() {
	model := func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			fmt.Println("history:", req.History()[0].Text)
			fmt.Println("last:   ", req.Messages[len(req.Messages)-1].Text)
		}
	}
	noon := func() time.Time { return time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC) }
	req := &holdfast.ModelRequest{
		Messages: []holdfast.Message{{ID: "u1", Role: holdfast.RoleUser, Text: "Is it late?"}},
	}
	for range clock(noon).Model(model)(context.Background(), req) {
	}
	// Output:
	// history: Is it late?
	// last:    It is Tue, 06 May 2031 12:00:00 UTC.
}
