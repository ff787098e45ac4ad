package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/anthropic"
)

// A model of Anthropic's takes one line: the key comes from ANTHROPIC_API_KEY. If it is not
// set, the error says so before anything runs.
func ExampleNew() {
	_, err := anthropic.New(anthropic.Options{Model: "claude-sonnet-5-5", Getenv: func(string) string { return "" }})
	fmt.Println(err)
	// Output:
	// the model claude-sonnet-5-5 needs a key: set ANTHROPIC_API_KEY, or name a server that needs none with ANTHROPIC_BASE_URL
}

// A model that thinks before it answers.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"claude"}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"A greeting."}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hello, Ann."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

`)
	}))
	defer provider.Close()

	model, err := anthropic.New(anthropic.Options{
		BaseURL: provider.URL,
		Key:     "sk-1",
		Model:   "claude",
		HTTP:    provider.Client(),
		Params: map[string]any{
			"thinking":   map[string]any{"type": "adaptive", "display": "summarized"},
			"max_tokens": 2000,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	question := &holdfast.ModelRequest{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: "I am Ann."}}}
	for delta, err := range model.Stream(context.Background(), question) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if delta.Reasoning != "" {
			fmt.Println("thinking:", delta.Reasoning)
		}
		fmt.Print(delta.Text)
		if delta.Finish != "" {
			fmt.Printf("\nfinished: %s\n", delta.Finish)
		}
	}
	// Output:
	// thinking: A greeting.
	// Hello, Ann.
	// finished: stop
}
