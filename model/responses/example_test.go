package responses_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/responses"
)

// A model of the Responses API takes one line: the key comes from OPENAI_API_KEY. If it is
// not set, the error says so before anything runs.
func ExampleNew() {
	_, err := responses.New(responses.Options{Model: "gpt-6-luna", Getenv: func(string) string { return "" }})
	fmt.Println(err)
	// Output:
	// the model gpt-6-luna needs a key: set OPENAI_API_KEY, or name a server that needs none with OPENAI_BASE_URL
}

// A model that thinks before it answers.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"A greeting."}

data: {"type":"response.output_text.delta","output_index":1,"delta":"Hello, Ann."}

data: {"type":"response.completed","response":{"status":"completed"}}

`)
	}))
	defer provider.Close()

	model, err := responses.New(responses.Options{
		BaseURL: provider.URL, Key: "sk-1", Model: "gpt-6-luna", HTTP: provider.Client(),
		Params: map[string]any{"reasoning": map[string]any{"summary": "auto"}},
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
