// Package modeltest is the suite that every client of a model provider passes. A provider
// plugs in a fake: a function that writes an answer in its form, as recorded from the real
// one. The suite plays whole answers, cuts them at every byte, and plays what providers do
// when something is wrong with them, with their connection or with the request.
package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

// Model is a model that says its name.
type Model interface {
	holdfast.Model
	ModelName() (provider, model string)
}

// Provider is a provider's client, and a fake of the provider.
type Provider struct {
	// New makes a model whose provider is asked through the client. The host of its base
	// URL is never reached.
	New func(model, key string, client *http.Client) (Model, error)
	// Stream writes an answer in the provider's form, one element for each event.
	Stream func(Answer) []string
	// Trailing is how many events at the end may be missing, because the answer is
	// complete before them.
	Trailing int
	// Thinks: the provider streams reasoning, and Signs: it needs it back. Without them
	// the suite's answers have none.
	Thinks, Signs bool
	// SignsCalls: the provider needs back what it gave with a call.
	SignsCalls bool
	// Nameless: calls have no ids.
	Nameless bool
	// InOrder: pieces of parallel calls never come in turn, and a call may be one piece.
	InOrder bool
	// Usage is what the provider's usage of the suite's answers means; see [Tokens].
	Usage holdfast.Usage
	// CountsEarly: an answer that fails in the middle has said how large its input was.
	CountsEarly bool
	// Unknown are events of kinds that a client does not know, and may ignore.
	Unknown []string
	// Undecodable is an event that is not JSON.
	Undecodable string
	// Errors are error events, by the kind of the failure.
	Errors map[failure.Kind][]string
	// Refusals are responses that are not a 200.
	Refusals []Refusal
	// Refusing are error messages of a provider that does not take back what it gave with
	// earlier answers: the model is asked again without it.
	Refusing []string
	// Endings are whole streams that end in a failure, by its kind: refusals of the model,
	// for example.
	Endings map[failure.Kind][]string
}

// Refusal is a response instead of an answer.
type Refusal struct {
	Status int
	Header map[string]string
	Body   string
	Kind   failure.Kind
}

// Answer is what the fake says.
type Answer struct {
	// Reasoning and Text are pieces of them; reasoning comes first.
	Reasoning, Text []string
	// Signature is what the provider needs back of the reasoning.
	Signature string
	Calls     []Call
	Finish    holdfast.FinishReason
}

// Call is a call of an [Answer]. The pieces of the arguments of parallel calls come in
// turn, if the provider can do that.
type Call struct {
	ID, Name  string
	Arguments []string
	// Signature is what the provider needs back of the call.
	Signature string
}

// Tokens are the counts of each of the suite's answers, in the provider's own report: 100
// tokens of input in all, 60 of them read from a cache and 10 written to it; 50 of output
// in all, 20 of them reasoning; as far as the provider reports them.
const (
	Input, Cached, Written = 100, 60, 10
	Output, Reasoning      = 50, 20
)

// Key is the key of the suite's models; it is never seen in an error.
const Key = "sk-very-secret-key"

// heard is what a model has said.
type heard struct {
	text, reasoning, secret string
	// calls are "id name arguments".
	calls   []string
	secrets []string // of the calls
	finish  holdfast.FinishReason
	usage   *holdfast.Usage
	err     error
}

func (h *heard) String() string {
	return fmt.Sprintf("text %q reasoning %q calls %q finish %q", h.text, h.reasoning, h.calls, h.finish)
}

// failure returns the error as a ModelError; nil if it is none.
func (h *heard) failure() *holdfast.ModelError {
	var e *holdfast.ModelError
	if errors.As(h.err, &e) {
		return e
	}
	return nil
}

// suite is one provider under test.
type suite struct{ Provider }

// wire is a transport that answers with a response, and keeps what was asked.
type wire struct {
	status int
	header map[string]string
	body   func(context.Context) io.Reader

	mu     sync.Mutex
	asked  []string
	closed int
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, string(sent))
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	h := http.Header{"Content-Type": {"text/event-stream"}, "Request-Id": {"req-1"}}
	for name, value := range w.header {
		h.Set(name, value)
	}
	return &http.Response{
		StatusCode: w.status,
		Header:     h,
		Request:    r,
		Body: &closing{Reader: w.body(r.Context()), closed: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.closed++
		}},
	}, nil
}

type closing struct {
	io.Reader
	closed func()
}

// Close implements io.Closer.
func (c *closing) Close() error {
	c.closed()
	return nil
}

// says is a wire that answers with a stream of these bytes, which ends cleanly.
func says(stream string) *wire {
	return &wire{status: http.StatusOK, body: func(context.Context) io.Reader { return strings.NewReader(stream) }}
}

// replies is a transport that answers with a function.
type replies func(*http.Request) (status int, body string)

// Replies returns a client for which a function plays the provider.
func Replies(reply func(*http.Request) (status int, body string)) *http.Client {
	return &http.Client{Transport: replies(reply)}
}

// RoundTrip implements http.RoundTripper.
func (f replies) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := f(r)
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{},
		Request:    r,
		Body:       io.NopCloser(strings.NewReader(body)),
	}, nil
}

// model returns the provider's model at the other end of a wire.
func (s *suite) model(t *testing.T, name string, w *wire) Model {
	t.Helper()
	m, err := s.New(name, Key, &http.Client{Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// question is what the suite asks.
func question() *holdfast.ModelRequest {
	return &holdfast.ModelRequest{
		Instructions: []string{
			"Be brief.",
		},
		Messages: []holdfast.Message{{ID: "u1", Role: holdfast.RoleUser, Text: "private prompt"}},
		Tools: []holdfast.ToolSpec{
			{
				Name:        "look",
				Description: "Looks.",
				Parameters:  json.RawMessage(`{"type":"object","properties":{"x":{"type":"number"}}}`),
			},
			{Name: "wait"},
		},
	}
}

// ask asks a model, and checks what every sequence of deltas is.
func ask(ctx context.Context, t *testing.T, m holdfast.Model, req *holdfast.ModelRequest) *heard {
	t.Helper()
	h := &heard{}
	calls := map[int]*holdfast.ToolCall{}
	for d, err := range m.Stream(ctx, req) {
		if h.finish != "" || h.err != nil {
			t.Error("something came after the end")
		}
		if err != nil {
			h.err = err
			continue
		}
		h.text, h.reasoning, h.secret, h.finish = h.text+d.Text, h.reasoning+d.Reasoning, h.secret+
			d.ReasoningSecret, d.Finish
		if d.Usage != nil {
			h.usage = d.Usage
		}
		if d.Call == nil {
			continue
		}
		c := calls[d.Call.Index]
		if c == nil {
			if d.Call.Index != len(calls) || d.Call.Name == "" {
				t.Errorf("a call begins with %+v", d.Call)
			}
			c = &holdfast.ToolCall{ID: d.Call.ID, Name: d.Call.Name}
			calls[d.Call.Index] = c
		}
		c.Arguments = append(c.Arguments, d.Call.Arguments...)
		c.EncryptedValue += d.Call.EncryptedValue
	}
	for i := range len(calls) {
		h.calls = append(h.calls, fmt.Sprintf("%s %s %s", calls[i].ID, calls[i].Name, calls[i].Arguments))
		h.secrets = append(h.secrets, calls[i].EncryptedValue)
	}
	if h.finish == "" && h.err == nil {
		t.Error("the sequence ended without an end")
	}
	return h
}

// reply asks the question of a provider that answers with this stream.
func (s *suite) reply(t *testing.T, stream string) *heard {
	t.Helper()
	return ask(t.Context(), t, s.model(t, "m1", says(stream)), question())
}

// JSON returns a text as JSON, for fakes.
func JSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(b)
}

// PieceOf is a piece of the arguments of the call with that place in a list.
type PieceOf struct {
	Call      int
	Arguments string
}

// InTurn returns the pieces of the calls' arguments, one of each call in turn.
func InTurn(calls []Call) []PieceOf {
	var out []PieceOf
	for n, more := 0, true; more; n++ {
		more = false
		for i, c := range calls {
			if n < len(c.Arguments) {
				more = true
				out = append(out, PieceOf{i, c.Arguments[n]})
			}
		}
	}
	return out
}
