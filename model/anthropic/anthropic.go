// Package anthropic has the models of Anthropic's Messages API:
//
//	model, err := anthropic.New(anthropic.Options{Model: "claude-sonnet-5-5"})
//
// reads the key from ANTHROPIC_API_KEY. In an agents file the same model is
// anthropic/claude-sonnet-5-5.
//
// A model's thinking is sent back to it unchanged, and to no other model. The prompt is
// cached: each request marks where it ends, so that the next one reads it from the cache.
// Content that a model cannot take, such as audio, is left out, and the model is told so.
package anthropic

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/model"
)

// DefaultBaseURL is Anthropic's own.
const DefaultBaseURL = "https://api.anthropic.com"

// DefaultMaxTokens bounds an answer, in tokens, unless Params has max_tokens: the API
// wants a bound.
const DefaultMaxTokens = 16384

// Options say which model is asked, and how. The base URL ends before /v1/messages; by default
// it is the environment variable ANTHROPIC_BASE_URL, or else [DefaultBaseURL]. The key is sent
// in the header x-api-key, by default from the variable ANTHROPIC_API_KEY; it may be unset if
// there is a BaseURL, an Authorization header or an x-api-key header. Params are max_tokens,
// thinking, temperature, tool_choice and whatever else the API knows. With cache_control among
// them no other mark is set.
type Options = model.Options

// Model is a model of Anthropic's. It may be used concurrently.
type Model struct {
	client *modelhttp.Client
	// binds: the provider has said that it binds thinking to what stands before it.
	binds atomic.Bool
}

var _ holdfast.Model = (*Model)(nil)

// provider is the provider's name in usage, errors and stored values.
const provider = "anthropic"

// version is that of the API.
const version = "2023-06-01"

// ours are the members of a request that Params cannot set.
var ours = []string{"model", "messages", "system", "tools", "stream"}

// New checks the options. It does not send anything. If there is no key where one is
// needed, the error names the environment variable to set.
func New(o Options) (*Model, error) {
	client, err := modelhttp.New(modelhttp.Provider{
		Name:           provider,
		BaseURLEnv:     "ANTHROPIC_BASE_URL",
		DefaultBaseURL: DefaultBaseURL,
		URLExample:     DefaultBaseURL,
		DefaultKeyEnv:  "ANTHROPIC_API_KEY",
		KeyHeader:      "X-Api-Key",
		OwnHeaders:     map[string]string{"Anthropic-Version": version},
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
		known := m.known()
		body, left, err := m.write(req, known)
		if err != nil {
			yield(holdfast.Delta{}, err)
			return
		}
		m.client.SayLeftOut(ctx, req, left)
		m.by(known).StreamAmended(ctx, "/v1/messages", body, yield, m.parser, m.amend(req, known))
	}
}

func (m *Model) parser(a *modelhttp.Answer) modelhttp.Parser {
	return &answer{Answer: a, model: m, blocks: map[int]*block{}}
}
