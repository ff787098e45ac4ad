// Package gemini has the models of Google's Gemini API:
//
//	model, err := gemini.New(gemini.Options{Model: "gemini-3.8-flash"})
//
// reads the key from GEMINI_API_KEY or GOOGLE_API_KEY. In an agents file the same model is
// gemini/gemini-3.8-flash.
//
// The signatures of a model's thoughts are sent back to it unchanged, and to no other model.
// Content that a model cannot take is left out, and the model is told so.
package gemini

import (
	"context"
	"iter"
	"net/url"
	"os"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/model"
)

// DefaultBaseURL is Google's own.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// Options say which model is asked, and how. The base URL ends before /v1beta/models; by
// default it is the environment variable GEMINI_BASE_URL, or else [DefaultBaseURL]. The key is
// sent in the header x-goog-api-key, by default from the variable GEMINI_API_KEY, or
// GOOGLE_API_KEY if only that is set; it may be unset if there is a BaseURL, an Authorization
// header or an x-goog-api-key header. Params are generationConfig, safetySettings, toolConfig
// and whatever else the API knows.
type Options = model.Options

// Model is a model of Google's. It may be used concurrently.
type Model struct {
	client *modelhttp.Client
	path   string
}

var _ holdfast.Model = (*Model)(nil)

// provider is the provider's name in usage, errors and stored values.
const provider = "gemini"

// ours are the members of a request that Params cannot set.
var ours = []string{"model", "contents", "systemInstruction", "system_instruction", "tools"}

// The variables with the key.
const (
	keyEnv      = "GEMINI_API_KEY"
	otherKeyEnv = "GOOGLE_API_KEY"
)

// New checks the options. It does not send anything. If there is no key where one is
// needed, the error names the environment variable to set.
func New(o Options) (*Model, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	defaultKeyEnv := keyEnv
	if o.Getenv(keyEnv) == "" && o.Getenv(otherKeyEnv) != "" {
		defaultKeyEnv = otherKeyEnv
	}
	client, err := modelhttp.New(modelhttp.Provider{
		Name:           provider,
		BaseURLEnv:     "GEMINI_BASE_URL",
		DefaultBaseURL: DefaultBaseURL,
		URLExample:     DefaultBaseURL,
		DefaultKeyEnv:  defaultKeyEnv,
		KeyHeader:      "X-Goog-Api-Key",
		OwnParams:      ours,
	}, o)
	if err != nil {
		return nil, err
	}
	return &Model{client: client, path: pathOf(o.Model)}, nil
}

// pathOf returns where a model is asked. A name may have its collection in it, such as
// tunedModels/NAME.
func pathOf(model string) string {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	parts := strings.Split(model, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/v1beta/" + strings.Join(parts, "/") + ":streamGenerateContent?alt=sse"
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
		m.client.StreamAmended(ctx, m.path, body, yield, m.parser(req.Attempt), m.amend(req))
	}
}

func (m *Model) parser(attempt int) func(*modelhttp.Answer) modelhttp.Parser {
	return func(a *modelhttp.Answer) modelhttp.Parser {
		return &answer{Answer: a, model: m, attempt: attempt}
	}
}

// amend returns the request without the model's earlier signatures if the provider does not
// take them back: they are worth something only to the key that they were made for.
func (m *Model) amend(req *holdfast.ModelRequest) modelhttp.Amend {
	bare := false
	return func(refused *holdfast.ModelError) (*modelhttp.Client, *modelhttp.Body) {
		said := strings.ToLower(strings.NewReplacer("_", "", " ", "").Replace(refused.Error()))
		if bare || !strings.Contains(said, "thoughtsignature") {
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
