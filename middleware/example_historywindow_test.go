package middleware_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
)

// When there are more than eight messages, the model is shown half as many: the first
// question and the newest messages.
func ExampleHistoryWindow() {
	window := middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 8})
	model := window.Model(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, m := range req.Messages {
				fmt.Println(m.Role+":", m.Text)
			}
			fmt.Println(req.Instructions[0])
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	})
	history := []holdfast.Message{
		{Role: holdfast.RoleUser, Text: "I want to go to Rome."},
		{Role: holdfast.RoleAssistant, Text: "When?"},
		{Role: holdfast.RoleUser, Text: "In May."},
		{Role: holdfast.RoleAssistant, Text: "By train, or by plane?"},
		{Role: holdfast.RoleUser, Text: "What is better?"},
		{Role: holdfast.RoleAssistant, Text: "The train, I think."},
		{Role: holdfast.RoleUser, Text: "By train."},
		{Role: holdfast.RoleAssistant, Text: "There is a train."},
		{Role: holdfast.RoleUser, Text: "Book it."},
	}
	for range model(context.Background(), &holdfast.ModelRequest{Messages: history}) {
	}
	// Output:
	// user: I want to go to Rome.
	// user: By train.
	// assistant: There is a train.
	// user: Book it.
	// The conversation before this point is not shown: 5 messages.
}
