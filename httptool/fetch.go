package httptool

// The built-in tool http_get: it reads pages of the public internet, as text.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
)

// FetchOptions configure the tool of [Fetch].
type FetchOptions struct {
	// MaxBytes is how much of a page is read; default 256 KiB.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// Timeout bounds a call; default 30 seconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Allow lists the private hosts that may be reached, as in [Options].
	Allow []string `json:"allow,omitempty"`
	// Proxy is that of [Options]; default none.
	Proxy string `json:"proxy,omitempty"`
	// RoundTripper wraps what sends the requests, as in [Options].
	RoundTripper func(http.RoundTripper) http.RoundTripper `json:"-"`
	// Resolver resolves names; default net.DefaultResolver.
	Resolver Resolver `json:"-"`
}

const fetchParameters = `{"type":"object","required":["url"],"additionalProperties":false,` +
	`"properties":{"url":{"type":"string","description":"an absolute http or https URL"}}}`

// Fetch makes the tool http_get, which reads a URL that the model chooses: text as it is, of
// HTML only its text, images as parts. It follows redirects, and neither they nor names nor
// any notation of an address lead into a private network. The text of a page deserves no more
// trust than a user.
func Fetch(o FetchOptions) (*Fetcher, error) {
	options := Options{
		Name:         "http_get",
		Description:  "Reads a page of the internet by its URL. Of HTML you get the text.",
		URL:          "https://unused.invalid/",
		Timeout:      o.Timeout,
		Result:       Result{MaxBytes: o.MaxBytes},
		Allow:        o.Allow,
		Proxy:        o.Proxy,
		RoundTripper: o.RoundTripper,
		Resolver:     o.Resolver,
	}
	t, err := New(options)
	if err != nil {
		return nil, err
	}
	if t.arguments, err = schema.Compile(json.RawMessage(fetchParameters)); err != nil {
		return nil, err
	}
	t.spec.Parameters = t.arguments.JSON()
	t.client.http.CheckRedirect = anywhere
	return &Fetcher{t}, nil
}

// Fetcher is the tool http_get. It may be used concurrently.
type Fetcher struct{ tool *Tool }

// anywhere follows redirects, but none from https to http. The guard looks at each.
func anywhere(next *http.Request, done []*http.Request) error {
	if len(done) > maxRedirects || next.URL.Scheme != "https" && next.URL.Scheme != "http" ||
		next.URL.Scheme != "https" && done[len(done)-1].URL.Scheme == "https" || next.URL.User != nil {
		return http.ErrUseLastResponse
	}
	next.Header.Del("Referer")
	return nil
}

// Spec implements [holdfast.Tool].
func (f *Fetcher) Spec() holdfast.ToolSpec { return f.tool.spec }

// Close closes the connections that no call uses.
func (f *Fetcher) Close() { f.tool.Close() }

// Call implements [holdfast.Tool].
func (f *Fetcher) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	t := f.tool
	a, err := t.read(ctx, call)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	text, _, err := a.text("url")
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	r, err := pageRequest(text)
	if err != nil {
		return holdfast.ToolResult{}, &argumentsError{err}
	}
	answer, err := t.send(ctx, call, r, a)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	if kind := mediaType(answer); (kind == "text/html" || kind == "application/xhtml+xml") && isText(answer) {
		answer.body = []byte(pageText(plain(answer)))
	}
	if !answer.ok() {
		return holdfast.ToolResult{Failed: true, Text: t.refusal(r, answer)}, nil
	}
	return t.shape.result(answer, t.client), nil
}

// pageRequest returns the request for a URL. URLs that clients read in different ways are
// refused, because private addresses hide in them.
func pageRequest(text string) (*request, error) {
	u, err := url.Parse(text)
	switch {
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }):
		return nil, errors.New("url must be in ASCII, without spaces and backslashes: escape the rest, and write the " +
			"xn-- form of an international name")
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return nil, errors.New("url must be absolute, like https://example.com/page")
	case u.User != nil:
		return nil, errors.New("url must have no user name and password")
	}
	r := &request{
		strange: true,
		method:  http.MethodGet,
		base:    &url.URL{Scheme: u.Scheme, Host: u.Host},
		path:    []template{{{text: strings.TrimPrefix(cmp.Or(u.EscapedPath(), "/"), "/")}}},
	}
	if u.RawQuery != "" {
		r.query = []queryMember{{name: template{{text: u.RawQuery}}, bare: true}}
	}
	return r, nil
}
