// Package openai has models that are served through OpenAI's chat completions API, which
// OpenAI, Ollama, vLLM, the llama.cpp server, OpenRouter and many others offer:
//
//	model, err := openai.New(openai.Options{Model: "gpt-5-mini"})
//
// reads the key from OPENAI_API_KEY. In an agents file the same model is
// openai/gpt-5-mini.
//
// It is a client of our own because a durable server must know when an answer is
// complete: a stream is complete only after its terminal marker, and any other end is a
// truncation. The loop decides whether to try again, because it knows what was already
// shown; the errors here say whether that can help.
package openai

// The model: its options, and sending a request. Reading the answer is in answer.go.

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/holdfast-agents/holdfast"
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
	// HTTP makes the requests; the default is a client with its own connections. It must
	// not have an overall timeout, because an answer may take any length of time. Redirects
	// are not followed unless it has a CheckRedirect.
	HTTP *http.Client
	// Now is the clock for Retry-After dates; default time.Now.
	Now func() time.Time
}

// Model is a model with an OpenAI-compatible API. It may be used concurrently.
type Model struct {
	url    string
	name   string
	params map[string]any
	header http.Header
	http   *http.Client
	now    func() time.Time
	// secrets never appear in an error's text.
	secrets []string
}

var _ holdfast.Model = (*Model)(nil)

// ours are the members of a request that Params cannot set.
var ours = []string{"model", "messages", "tools", "stream", "stream_options", "n"}

// New checks the options. It does not send anything. If there is no key where one is
// needed, the error names the environment variable to set.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("the model has no name: give the name that the provider knows it by")
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.BaseURL = cmp.Or(o.BaseURL, o.Getenv("OPENAI_BASE_URL"))
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	o.Key, o.BaseURL = key, cmp.Or(o.BaseURL, DefaultBaseURL)
	if err := checkURL(o.BaseURL); err != nil {
		return nil, err
	}
	if err := checkParams(o.Params); err != nil {
		return nil, err
	}
	header, secrets, err := headers(o)
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		o.HTTP = newClient()
	}
	o.HTTP = staying(o.HTTP)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Model{
		url: strings.TrimRight(o.BaseURL, "/") + "/chat/completions", name: o.Model,
		params: o.Params, header: header, http: o.HTTP, now: o.Now, secrets: secrets,
	}, nil
}

// variableNames matches names of environment variables. It is strict, because the name is
// shown in errors, and somebody may have put the key there.
var variableNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// key returns the key; empty if none is needed.
func (o *Options) key() (string, error) {
	switch {
	case o.Key != "" && o.KeyEnv != "":
		return "", errors.New("the model has both a key and the name of a variable with one: set Key or KeyEnv")
	case o.Key != "":
		return o.Key, nil
	case o.KeyEnv != "" && !variableNames.MatchString(o.KeyEnv):
		return "", errors.New("KeyEnv must be the name of an environment variable, like OPENAI_API_KEY; a key itself belongs in Key")
	case o.KeyEnv != "":
		if key := o.Getenv(o.KeyEnv); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("the model %s needs a key: set %s", o.Model, o.KeyEnv)
	}
	key := o.Getenv("OPENAI_API_KEY")
	if key == "" && o.BaseURL == "" && !o.authorizes() {
		return "", fmt.Errorf("the model %s needs a key: set OPENAI_API_KEY, or name a server that needs none with OPENAI_BASE_URL", o.Model)
	}
	return key, nil
}

// authorizes reports whether a header replaces the key.
func (o *Options) authorizes() bool {
	for name := range o.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// checkURL never shows the URL: if it cannot be parsed, a password may be anywhere in it.
func checkURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the model's base URL must be absolute, like https://api.openai.com/v1 or http://localhost:11434/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the model's base URL must have only scheme, host and path; set the key separately")
	}
	return nil
}

func checkParams(params map[string]any) error {
	for name := range params {
		if slices.Contains(ours, name) {
			return fmt.Errorf("the parameter %q cannot be set: the server sets it itself", name)
		}
	}
	if _, err := json.Marshal(params); err != nil {
		return fmt.Errorf("the parameters cannot be written as JSON: %w", err)
	}
	return nil
}

// minSecret is the length, in bytes, from which a header's value counts as a secret;
// removing shorter ones from the log would garble it.
const minSecret = 8

// headers returns the headers of each request, and the secrets in them.
func headers(o Options) (http.Header, []string, error) {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream, application/json"}}
	var secrets []string
	if o.Key != "" {
		if strings.ContainsFunc(o.Key, unicode.IsControl) {
			return nil, nil, errors.New("the model's key contains a line ending or another control character; often it is the last line ending of the key's file")
		}
		h.Set("Authorization", "Bearer "+o.Key)
		secrets = append(secrets, o.Key)
	}
	for name, value := range o.Headers {
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
			return nil, nil, fmt.Errorf("the header %q has a name that HTTP does not allow", name)
		case strings.ContainsFunc(value, unicode.IsControl):
			return nil, nil, fmt.Errorf("the value of the header %q contains a line ending or another control character", name)
		case h.Get(name) != "" && !strings.EqualFold(name, "Authorization"):
			return nil, nil, fmt.Errorf("the header %q cannot be set: the server sets it itself", name)
		}
		h.Set(name, value)
		// Of "Bearer abc", a provider may repeat only the second part.
		for _, part := range append([]string{value}, strings.Fields(value)...) {
			if len(part) >= minSecret {
				secrets = append(secrets, part)
			}
		}
	}
	return h, secrets, nil
}

// headerTimeout bounds the time until a provider starts to answer. Some queue requests
// first.
const headerTimeout = 5 * time.Minute

func newClient() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &http.Client{}
	}
	t = t.Clone()
	t.ResponseHeaderTimeout = headerTimeout
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	// A stream occupies its connection for a long time, and its text comes in small
	// pieces.
	t.ReadBufferSize, t.WriteBufferSize = 2<<10, 1<<10
	return &http.Client{Transport: t}
}

// staying returns a client that follows no redirects, unless it has a rule of its own: a
// redirect would take the conversation, and with it headers that hold keys, to wherever
// the provider says.
func staying(c *http.Client) *http.Client {
	if c.CheckRedirect != nil {
		return c
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Stream implements [holdfast.Model]. It reads in the caller's goroutine.
func (m *Model) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		a, err := m.ask(ctx, req, yield)
		defer a.close()
		if err == nil {
			err = a.read()
		}
		if err != nil && !errors.Is(err, errStopped) {
			a.fail(ctx, err)
		}
	}
}

// ask sends the request. The caller must close the answer, even after an error.
func (m *Model) ask(ctx context.Context, req *holdfast.ModelRequest, yield func(holdfast.Delta, error) bool) (*answer, error) {
	// A context of its own, so that ending only the reading is not taken for the caller
	// giving up.
	reading, cancel := context.WithCancel(ctx)
	a := &answer{model: m, yield: yield, cancel: cancel}
	res, err := m.post(reading, req)
	if err == nil {
		a.closer, a.body = res.Body, bufio.NewReaderSize(res.Body, readBuffer)
	}
	return a, err
}

func (m *Model) post(ctx context.Context, req *holdfast.ModelRequest) (*http.Response, error) {
	body, err := m.body(req)
	if err != nil {
		return nil, err
	}
	sent := &sending{body: body}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, sent.reader())
	if err != nil {
		return nil, err
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return sent.reader(), nil }
	// An answer may take long, and the connection would keep the request in memory.
	defer sent.forget()
	r.Header = m.header.Clone()
	res, err := m.http.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, readErr := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		return nil, errors.Join(m.refused(res, text), readErr)
	}
	return res, nil
}

// sending is a request's body, which is the whole conversation. It is released once the
// answer starts. A reader that has not reached its end keeps it until then, because a
// provider may answer before it has read everything.
type sending struct {
	mu   sync.Mutex
	body []byte
}

func (s *sending) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = nil
}

func (s *sending) reader() io.ReadCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &bodyReader{rest: s.body}
}

type bodyReader struct{ rest []byte }

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.rest = nil
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *bodyReader) Close() error { return nil }
