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
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configure a [Model]. Only Model must be set.
type Options struct {
	// Model is the provider's name of the model.
	Model string
	// BaseURL is what comes before /chat/completions; the default is the environment
	// variable OPENAI_BASE_URL, or else [DefaultBaseURL]. It may be plain http, for
	// servers on the same machine or network.
	BaseURL string
	// Key is sent as a bearer token. The default is the variable named by KeyEnv.
	Key string
	// KeyEnv is the name of the environment variable with the key; default
	// OPENAI_API_KEY. A variable that is named here must be set. The default may be
	// unset if there is a BaseURL or an Authorization header, since many servers need no
	// key.
	KeyEnv string
	// Getenv reads the environment; default os.Getenv.
	Getenv func(string) string
	// Params are further members of each request: temperature, top_p,
	// reasoning_effort and whatever else the provider knows.
	Params map[string]any
	// Headers are further headers of each request, which some gateways require. They
	// take precedence over those from the other options; like the key, their values are
	// kept out of the log.
	Headers map[string]string
	// Proxy is the URL of the proxy for the requests, or "direct" for none; the default is
	// that of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
	Proxy string
	// Timeout is how long the provider may send nothing, before its answer and within it;
	// default 5 minutes.
	Timeout time.Duration
	// HTTP makes the requests; the default is a client with its own connections. It must
	// not have an overall timeout, because an answer may take any length of time. Redirects
	// are not followed unless it has a CheckRedirect.
	HTTP *http.Client
	// Now is the clock for Retry-After dates; default time.Now.
	Now func() time.Time
}

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
	client, err := modelhttp.New(modelhttp.Options{
		Provider:       provider,
		API:            "chat completions",
		Model:          o.Model,
		BaseURL:        o.BaseURL,
		BaseURLEnv:     "OPENAI_BASE_URL",
		DefaultBaseURL: DefaultBaseURL,
		URLExample:     "https://api.openai.com/v1 or http://localhost:11434/v1",
		Key:            o.Key,
		KeyEnv:         o.KeyEnv,
		DefaultKeyEnv:  "OPENAI_API_KEY",
		KeyHeader:      "Authorization",
		KeyPrefix:      "Bearer ",
		Headers:        o.Headers,
		Params:         o.Params,
		OwnParams:      ours,
		Proxy:          o.Proxy,
		Timeout:        o.Timeout,
		HTTP:           o.HTTP,
		Getenv:         o.Getenv,
		Now:            o.Now,
	})
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
