package gemini

import (
	"net/http"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest/cuts"
	"github.com/holdfast-agents/holdfast/model/openai"
)

// TestCuts: a stream that breaks off anywhere leaves nothing behind when another provider's
// model answers.
func TestCuts(t *testing.T) {
	t.Parallel()
	cuts.Run(t, "gemini", conforming(false), cuts.Other{
		New: func(client *http.Client) (holdfast.Model, error) {
			return openai.New(openai.Options{Model: "m2", Key: "other", BaseURL: "https://other/v1", HTTP: client})
		},
		Stream: cuts.ChatCompletions,
	})
}
