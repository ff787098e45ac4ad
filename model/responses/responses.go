// Package responses has the models of OpenAI's Responses API:
//
//	model, err := responses.New(responses.Options{Model: "gpt-6-luna"})
//
// reads the key from OPENAI_API_KEY. In an agents file the same model is
// responses/gpt-6-luna.
//
// Nothing is stored at the provider: each request has the whole conversation, and the model's
// reasoning, encrypted by the provider, is sent back unchanged and to no other model. Content
// that a model cannot take, such as audio, is left out, and the model is told so.
package responses

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/model"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options say which model is asked, and how. The base URL ends before /responses; by default it
// is the environment variable OPENAI_BASE_URL, or else [DefaultBaseURL]. The key is a bearer
// token, by default the variable OPENAI_API_KEY; it may be unset if there is a BaseURL or an
// Authorization header. Params are reasoning, max_output_tokens, text and whatever else the API
// knows. Its tools are those that the provider runs itself, such as image_generation, and are
// sent beside the agent's. With include or prompt_cache_key among them, theirs are sent instead
// of those that the server sets.
type Options = model.Options

// Model is a model with the Responses API. It may be used concurrently.
type Model struct {
	client *modelhttp.Client
	// builtin are tools that the provider runs itself.
	builtin []any
}

var _ holdfast.Model = (*Model)(nil)

// provider is the provider's name in usage, errors and stored values.
const provider = "openai"

// ours are the members of a request that Params cannot set. The conversation is ours, so
// the provider must neither store it nor continue one that it has.
var ours = []string{
	"model", "input", "instructions", "stream", "store", "previous_response_id", "conversation", "background",
}

// New checks the options. It does not send anything. If there is no key where one is
// needed, the error names the environment variable to set.
func New(o Options) (*Model, error) {
	client, err := modelhttp.New(modelhttp.Provider{
		Name:           provider,
		API:            "responses",
		BaseURLEnv:     "OPENAI_BASE_URL",
		DefaultBaseURL: DefaultBaseURL,
		URLExample:     DefaultBaseURL,
		DefaultKeyEnv:  "OPENAI_API_KEY",
		KeyHeader:      "Authorization",
		KeyPrefix:      "Bearer ",
		OwnParams:      ours,
	}, o)
	if err != nil {
		return nil, err
	}
	own, err := builtin(client.Params)
	if err != nil {
		return nil, err
	}
	return &Model{client: client, builtin: own}, nil
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
		body, left, err := m.body(req)
		if err != nil {
			yield(holdfast.Delta{}, err)
			return
		}
		m.client.SayLeftOut(ctx, req, left)
		m.client.StreamAmended(ctx, "/responses", body, yield, m.parser, m.amend(req))
	}
}

// amend returns the request without the model's earlier reasoning if the provider does not
// take that back: another organization cannot read it, and it must lead to something.
func (m *Model) amend(req *holdfast.ModelRequest) modelhttp.Amend {
	bare := false
	return func(refused *holdfast.ModelError) (*modelhttp.Client, *modelhttp.Body) {
		if bare || !refusesReasoning(strings.ToLower(refused.Error())) {
			return nil, nil
		}
		bare = true
		body, _, err := m.write(req, bare)
		if err != nil {
			return nil, nil
		}
		return m.client, body
	}
}

// refusesReasoning reports whether an error is about reasoning in the conversation.
func refusesReasoning(said string) bool {
	return strings.Contains(said, "encrypted_content") || strings.Contains(said, "encrypted content") ||
		strings.Contains(said, "of type 'reasoning'")
}

func (m *Model) parser(a *modelhttp.Answer) modelhttp.Parser {
	return &answer{Answer: a, model: m, items: map[int]*item{}, known: map[string]*item{}}
}
