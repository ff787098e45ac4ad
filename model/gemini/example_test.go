package gemini_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/gemini"
)

// A model of Google's takes one line: the key comes from GEMINI_API_KEY. If it is not set,
// the error says so before anything runs.
func ExampleNew() {
	_, err := gemini.New(gemini.Options{Model: "gemini-3.8-flash", Getenv: func(string) string { return "" }})
	fmt.Println(err)
	// Output:
	// the model gemini-3.8-flash needs a key: set GEMINI_API_KEY, or name a server that needs none with GEMINI_BASE_URL
}

// A model that shows its thoughts before it answers.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"candidates":[{"content":{"parts":[{"text":"A greeting.","thought":true}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"Hello, Ann."}]},"finishReason":"STOP"}]}

`)
	}))
	defer provider.Close()

	model, err := gemini.New(gemini.Options{
		BaseURL: provider.URL,
		Key:     "k-1",
		Model:   "gemini",
		HTTP:    provider.Client(),
		Params: map[string]any{
			"generationConfig": map[string]any{"thinkingConfig": map[string]any{"includeThoughts": true}},
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
