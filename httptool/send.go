package httptool

// Sending a request, and what it means if no answer comes. A failure before anything was
// written to a connection is a call that was never made. After that, only the tool's
// effect tells whether it matters.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/idempotency"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/internal/secrets"
)

// The codes of a tool's errors.
const (
	// CodeRefused: the address is private, and it is not listed in [Options.Allow].
	CodeRefused = "http_address_refused"
	// CodeNoCredential: the request was not sent, because there is no credential for the service.
	CodeNoCredential = "http_no_credential"
	// CodeUnreachable: nothing was sent, because no connection could be made.
	CodeUnreachable = "http_unreachable"
	// CodeNoAnswer: the request was sent, or an earlier try of the call may have sent it, and no
	// answer came.
	CodeNoAnswer = "http_no_answer"
	// CodeFailed: the service answered that it failed, and it does not say what it did before.
	CodeFailed = "http_service_failed"
)

// client sends the requests of a tool, or of all tools of a document.
type client struct {
	http    *http.Client
	guarded *netguard.Transport
	now     func() time.Time
	// secrets are kept out of what models read; they only grow while tools are made.
	secrets *secrets.List
}

// newClient makes a client.
func newClient(o *Options) (*client, error) {
	guard, err := netguard.New(netguard.Options{Allow: o.Allow, Proxy: o.Proxy, Resolver: o.Resolver})
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	// net/http sends a GET again by itself if a connection that it has used before breaks.
	base.DisableKeepAlives = unrepeatable(o.Effect) && effectOf(o.Method) == holdfast.EffectPure
	c := &client{now: o.Now, guarded: guard.Transport(base), secrets: &secrets.List{}}
	var transport http.RoundTripper = c.guarded
	if o.RoundTripper != nil {
		transport = o.RoundTripper(transport)
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: redirects(o.FollowRedirects)}
	return c, nil
}

// unrepeatable reports whether a request of a tool must never be sent twice.
func unrepeatable(e holdfast.Effect) bool {
	return e == holdfast.EffectOnce || e == holdfast.EffectQuery
}

func (c *client) closeIdle() { c.guarded.CloseIdleConnections() }

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// redirects returns the rule for redirects: none, or those of GET and HEAD that stay where
// the headers with credentials may go.
func redirects(follow bool) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, done []*http.Request) error {
		first := done[0]
		read := first.Method == http.MethodGet || first.Method == http.MethodHead
		if !follow || !read || len(done) > maxRedirects || next.URL.Scheme != first.URL.Scheme ||
			next.URL.Host != first.URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

// clean returns a text without secrets: a service may repeat what it was sent.
func (c *client) clean(a *answer, s string) string { return c.secrets.Clean(a.given.Clean(s)) }

// answer is what a service answered.
type answer struct {
	status   int
	header   http.Header
	location string // of a redirect, without its query
	body     []byte
	cut      bool  // there is more than is read
	broken   error // the answer broke off
	// given are the credentials that the request was sent with.
	given *secrets.List
}

func (a *answer) ok() bool { return a.status >= 200 && a.status < 300 }

// errTimeUp is the cause if a call took longer than its timeout.
var errTimeUp = errors.New("the time for the call is up")

// tracker tells whether a request may have reached anybody.
type tracker struct{ began, wrote atomic.Bool }

func (t *tracker) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { t.began.Store(true) },
		WroteHeaders: func() { t.wrote.Store(true) },
	})
}

// send sends the request of a call and reads the answer. An error has a text for the model.
func (t *Tool) send(ctx context.Context, call holdfast.ToolCall, r *request, a *arguments) (*answer, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, t.timeout, errTimeUp)
	defer cancel()
	tracker := &tracker{}
	// The transport finds the key in the context's call.
	sending, given := secrets.Collect(holdfast.ContextWithCall(bounded, call, nil))
	request, err := r.build(tracker.trace(sending), a)
	if err != nil {
		return nil, &argumentsError{fmt.Errorf("nothing was sent by %s: %w", t.spec.Name, err)}
	}
	if !r.strange {
		headers.AddTraceparent(ctx, request.Header)
	}
	res, err := t.roundTrip(request, r)
	if err != nil {
		return nil, t.noAnswer(ctx, bounded, call, r, tracker, err)
	}
	defer res.Body.Close()
	answer := &answer{status: res.StatusCode, header: res.Header, location: location(res), given: given}
	answer.body, answer.broken = io.ReadAll(io.LimitReader(res.Body, t.shape.max+1))
	if int64(len(answer.body)) > t.shape.max {
		answer.body, answer.cut, answer.broken = answer.body[:t.shape.max], true, nil
	}
	if answer.broken != nil && !unrepeatable(t.spec.Effect) {
		return nil, t.noAnswer(ctx, bounded, call, r, tracker, answer.broken)
	}
	return answer, nil
}

// roundTrip sends a request; that of a call with an effect carries the call's key.
func (t *Tool) roundTrip(request *http.Request, r *request) (*http.Response, error) {
	client := *t.client.http
	if key := request.Header.Values(otherKey); len(key) > 0 && unrepeatable(t.spec.Effect) {
		// In its canonical form net/http takes it for leave to send the request again.
		request.Header.Del(otherKey)
		request.Header[strings.ToLower(otherKey)] = key
	}
	if t.spec.Effect != holdfast.EffectPure && r == t.request {
		client.Transport = idempotency.Transport{Base: client.Transport}
	}
	return client.Do(request)
}

// otherKey is the other name of the header for idempotency keys.
const otherKey = "X-Idempotency-Key"

// location returns where a redirect leads, without what may be a secret in it.
func location(res *http.Response) string {
	u, err := res.Location()
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// noAnswer returns the error of a request without a whole answer.
func (t *Tool) noAnswer(
	ctx, bounded context.Context, call holdfast.ToolCall, r *request, sent *tracker, err error,
) error {
	var inURL *url.Error // its text has the whole URL
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	} else if context.Cause(bounded) != nil {
		err = fmt.Errorf("%w: %w", errTimeUp, err)
	}
	var refused *netguard.Refused
	var unsent interface{ NotSent() bool }
	code, nothing, earlier, wrapped := CodeUnreachable, "Nothing was sent", "",
		error(netguard.Unsent{Err: err})
	if call.Again && r == t.request {
		wrapped = err
		code, nothing, earlier = CodeNoAnswer, "This try sent nothing",
			t.mayStand(" An earlier one may have taken effect.")
	}
	switch {
	case sent.wrote.Load(): // at least to the one that redirected it
	case errors.As(err, new(*holdfast.Interrupt)): // somebody has to log in first
		return err
	case errors.As(err, &unsent) && unsent.NotSent():
		return holdfast.Errorf(CodeNoCredential, "%s: %s.%s", nothing, err, earlier).Wrap(wrapped)
	case errors.As(err, &refused):
		return refusal(refused, nothing, earlier).Wrap(wrapped)
	case sent.began.Load():
		return holdfast.Errorf(code, "%s: %s cannot be reached.%s", nothing, r.host(), earlier).Wrap(wrapped)
	}
	return t.inDoubt(r, err)
}

// refusal returns the error of an address that is refused.
func refusal(refused *netguard.Refused, what, more string) *holdfast.Error {
	return holdfast.Errorf(CodeRefused, "%s: %s%s", what, refused.Public(), more).
		WithHint("Operators allow a private host with allow: [%s].", refused.Host)
}

// inDoubt returns the error of a request that may have reached its service. A transport that
// calls no hook of the tracker proves nothing, so its requests may have.
func (t *Tool) inDoubt(r *request, err error) error {
	var refused *netguard.Refused
	switch once := unrepeatable(t.spec.Effect) && r == t.request; {
	case errors.As(err, &refused):
		if once {
			err = errors.Join(holdfast.ErrOutcomeUnknown, err)
		}
		return refusal(refused, "The request was redirected, and not sent on", "").Wrap(err)
	case once:
		return holdfast.Errorf(CodeNoAnswer,
			"The request was sent to %s and no answer came. It may have taken effect.", r.host()).
			Wrap(errors.Join(holdfast.ErrOutcomeUnknown, err))
	}
	what := "the connection broke before the answer was complete"
	if errors.Is(err, errTimeUp) {
		what = fmt.Sprintf("no answer came within %s", t.timeout)
	}
	return holdfast.Errorf(CodeNoAnswer, "The request was sent to %s, and %s.%s", r.host(), what,
		t.mayStand(" It may have taken effect.")).
		Wrap(err)
}

// mayStand returns the sentence, unless the tool has no effect.
func (t *Tool) mayStand(sentence string) string {
	if t.spec.Effect == holdfast.EffectPure {
		return ""
	}
	return sentence
}

// resultOf returns what an answer means.
func (t *Tool) resultOf(a *answer) (holdfast.ToolResult, error) {
	switch {
	case a.ok():
		return t.shape.result(a, t.client), nil
	case a.status >= 500 && unrepeatable(t.spec.Effect) && !slices.Contains(t.notDone, a.status):
		return holdfast.ToolResult{}, holdfast.Errorf(CodeFailed,
			"%s answered %s, which leaves open whether the call took effect.", t.request.host(), statusText(a.status)).
			Wrap(fmt.Errorf("%w: status %d", holdfast.ErrOutcomeUnknown, a.status))
	case a.status == http.StatusSeeOther && t.spec.Effect != holdfast.EffectPure:
		// It says that the request was handled, and where its result is.
		return holdfast.ToolResult{
			Text: t.client.clean(a, "The service answered 303 See Other; the result is at "+a.location),
		}, nil
	}
	return holdfast.ToolResult{Failed: true, Text: t.refusal(t.request, a)}, nil
}

// maxRefusal is how much of an answer's body is shown if the service refused the call.
const maxRefusal = 4 << 10

// refusal returns what the model reads of an answer that is no success.
func (t *Tool) refusal(r *request, a *answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s answered %s.", r.host(), statusText(a.status))
	if a.location != "" {
		fmt.Fprintf(&b, " It points to %s, which was not followed.", a.location)
	}
	if wait := retryAfter(a.header, t.client.now()); wait > 0 {
		fmt.Fprintf(&b, " It asks to wait %s before the next try.", wait)
	}
	if body := plain(a); body != "" {
		b.WriteString("\n" + cutText(body, maxRefusal))
	}
	return t.client.clean(a, b.String())
}

func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// retryAfter reads how long a service asks to wait, in whole seconds.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0).Round(time.Second)
	}
	return 0
}
