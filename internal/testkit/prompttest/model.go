package prompttest

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
)

// Model returns a model of the provider that is asked without a network.
func (p *Provider) Model(name string) (holdfast.Model, error) {
	const base, key = "https://fake", "k"
	http := &http.Client{Transport: transport{p}}
	switch p.Format {
	case OpenAI:
		return openai.New(openai.Options{Model: name, Key: key, BaseURL: base, HTTP: http})
	case Responses:
		return responses.New(responses.Options{Model: name, Key: key, BaseURL: base, HTTP: http})
	case Anthropic:
		return anthropic.New(anthropic.Options{Model: name, Key: key, BaseURL: base, HTTP: http})
	case Gemini:
		return gemini.New(gemini.Options{Model: name, Key: key, BaseURL: base, HTTP: http})
	}
	return nil, fmt.Errorf("there is no format %q", p.Format)
}

type transport struct{ *Provider }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}
