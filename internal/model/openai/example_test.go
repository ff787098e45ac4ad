package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/model/openai"
)

// A model on any server that offers OpenAI's chat completions.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"Hello"}}]}

data: {"choices":[{"delta":{"content":", Ann."},"finish_reason":"stop"}]}

data: [DONE]

`)
	}))
	defer provider.Close()

	model, err := openai.New(openai.Options{
		BaseURL: provider.URL + "/v1", APIKey: "sk-1", Model: "small", HTTP: provider.Client(),
		Params: map[string]any{"temperature": 0.2},
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
		fmt.Print(delta.Text)
		if delta.Finish != "" {
			fmt.Printf("\nfinished: %s\n", delta.Finish)
		}
	}
	// Output:
	// Hello, Ann.
	// finished: stop
}
