package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/openai"
)

// A model of OpenAI's takes one line: the key comes from OPENAI_API_KEY. If it is not set,
// the error says so before anything runs.
func ExampleNew() {
	_, err := openai.New(openai.Options{Model: "gpt-6-luna", Getenv: func(string) string { return "" }})
	fmt.Println(err)
	// Output:
	// the model gpt-6-luna needs a key: set OPENAI_API_KEY, or name a server that needs none with OPENAI_BASE_URL
}

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
		BaseURL: provider.URL + "/v1", Key: "sk-1", Model: "small", HTTP: provider.Client(),
		Params:  map[string]any{"temperature": 0.2},
		Headers: map[string]string{"X-Title": "example"},
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
