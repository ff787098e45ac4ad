package anthropic

import (
	"net/http"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest/cuts"
	"github.com/holdfast-agents/holdfast/model/openai"
)

// TestCuts: a stream that breaks off anywhere leaves nothing behind when another provider's
// model answers.
func TestCuts(t *testing.T) {
	t.Parallel()
	cuts.Run(t, "anthropic", modeltest.Provider{
		New: func(model, key string, client *http.Client) (modeltest.Model, error) {
			return New(Options{Model: model, Key: key, BaseURL: "https://fake", HTTP: client})
		},
		Stream: fake, Thinks: true, Signs: true,
	}, cuts.Other{
		New: func(client *http.Client) (holdfast.Model, error) {
			return openai.New(openai.Options{Model: "m2", Key: "other", BaseURL: "https://other/v1", HTTP: client})
		},
		Stream: cuts.ChatCompletions,
	})
}
