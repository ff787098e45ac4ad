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
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// DefaultBaseURL is Google's own.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// Options configure a [Model]. Only Model must be set.
type Options struct {
	// Model is Google's name of the model.
	Model string
	// BaseURL is what comes before /v1beta/models; the default is the environment variable
	// GEMINI_BASE_URL, or else [DefaultBaseURL].
	BaseURL string
	// Key is sent in the header x-goog-api-key. The default is the variable named by
	// KeyEnv.
	Key string
	// KeyEnv is the name of the environment variable with the key; default GEMINI_API_KEY,
	// or GOOGLE_API_KEY if only that is set. A variable that is named here must be set. The
	// default may be unset if there is a BaseURL, an Authorization header or an
	// x-goog-api-key header.
	KeyEnv string
	// Getenv reads the environment; default os.Getenv.
	Getenv func(string) string
	// Params are further members of each request: generationConfig, safetySettings,
	// toolConfig and whatever else the API knows.
	Params map[string]any
	// Headers are further headers of each request. They take precedence over those from
	// the other options; like the key, their values are kept out of the log.
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
	client, err := modelhttp.New(modelhttp.Options{
		Provider:       provider,
		Model:          o.Model,
		BaseURL:        o.BaseURL,
		BaseURLEnv:     "GEMINI_BASE_URL",
		DefaultBaseURL: DefaultBaseURL,
		URLExample:     DefaultBaseURL,
		Key:            o.Key,
		KeyEnv:         o.KeyEnv,
		DefaultKeyEnv:  defaultKeyEnv,
		KeyHeader:      "X-Goog-Api-Key",
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
