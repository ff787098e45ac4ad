// Package openai has models that are served through OpenAI's chat completions API, which
// Ollama, vLLM, the llama.cpp server, OpenRouter and many others offer:
//
//	model, err := openai.New(openai.Options{Model: "qwen3", BaseURL: "http://localhost:11434/v1"})
//
// reads the key, if there is one, from OPENAI_API_KEY. In an agents file the same model is
// openai/qwen3. OpenAI's own models take tools here only with reasoning_effort none; they
// are better asked through package responses.
//
// A stream is complete only after its terminal marker; any other end is a truncation,
// which the server answers with another attempt.
package openai

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/model"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options say which model is asked, and how. The base URL ends before /chat/completions; by
// default it is the environment variable OPENAI_BASE_URL, or else [DefaultBaseURL]. The key is
// a bearer token, by default the variable OPENAI_API_KEY; it may be unset if there is a
// BaseURL or an Authorization header. Params are temperature, top_p, reasoning_effort and
// whatever else the provider knows.
type Options = model.Options

// Model is a model with an OpenAI-compatible API. It may be used concurrently.
type Model struct{ client *modelhttp.Client }

var _ holdfast.Model = (*Model)(nil)

// provider is the provider's name in usage, errors and stored values.
const provider = "openai"

// ours are the members of a request that Params cannot set.
var ours = []string{"model", "messages", "tools", "stream", "stream_options", "n"}

// New checks the options. It does not send anything. If there is no key where one is
// needed, the error names the environment variable to set.
func New(o Options) (*Model, error) {
	client, err := modelhttp.New(modelhttp.Provider{
		Name:           provider,
		API:            "chat completions",
		BaseURLEnv:     "OPENAI_BASE_URL",
		DefaultBaseURL: DefaultBaseURL,
		URLExample:     "https://api.openai.com/v1 or http://localhost:11434/v1",
		DefaultKeyEnv:  "OPENAI_API_KEY",
		KeyHeader:      "Authorization",
		KeyPrefix:      "Bearer ",
		OwnParams:      ours,
	}, o)
	if err != nil {
		return nil, err
	}
	return &Model{client: client}, nil
}

// ModelName returns the names of the provider and of the model.
func (m *Model) ModelName() (string, string) { return provider, m.client.Model }

// CircuitKey is a short hash of where the model is asked and with which key and headers; it
// tells none of them.
func (m *Model) CircuitKey() string { return m.client.CircuitKey() }

// Stream implements [holdfast.Model]. It reads in the caller's goroutine.
func (m *Model) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	req = modelhttp.ShowState(req)
	return func(yield func(holdfast.Delta, error) bool) {
		body, err := m.body(req)
		if err != nil {
			yield(holdfast.Delta{}, err)
			return
		}
		m.client.SayLeftOut(ctx, req, leftOut(req.Messages))
		m.client.Stream(ctx, "/chat/completions", body, yield, m.parser)
	}
}
