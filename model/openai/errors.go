package openai

// Errors of providers: how they are recognized, whether another attempt can help, and
// what the caller may read about them.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
)

const (
	// maxErrorBody bounds how much of an error's body is read, maxErrorText how much of
	// it is logged, in bytes.
	maxErrorBody = 64 << 10
	maxErrorText = 500
	// maxRetryAfter bounds how long a provider can make a run wait.
	maxRetryAfter = 2 * time.Minute
)

// errStopped means that the caller wants no more deltas.
var errStopped = errors.New("stopped")

// apiError is what a provider says in an error, as an object or as text.
type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"`
}

// UnmarshalJSON never fails: anything but the expected object becomes the message.
func (e *apiError) UnmarshalJSON(b []byte) error {
	type plain apiError
	if json.Unmarshal(b, (*plain)(e)) == nil {
		return nil
	}
	*e = apiError{}
	if json.Unmarshal(b, &e.Message) != nil {
		e.Message = string(b)
	}
	return nil
}

// errorOf reads an error that is not a member of another object.
func errorOf(data []byte) *apiError {
	e := &apiError{}
	if json.Unmarshal(data, e) != nil {
		e.Message = string(data)
	}
	return e
}

// isError reports whether an event without choices is an error: by its name, or as an
// object that says so, which vLLM used to send.
func (ev *event) isError() bool {
	var o struct {
		Object string `json:"object"`
	}
	return ev.failed || json.Unmarshal(ev.data, &o) == nil && o.Object == "error"
}

// unwrapped returns the only element of a list, since Gemini sends its errors in a list.
func unwrapped(data []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return data
}

func (e *apiError) code() string {
	switch c := e.Code.(type) {
	case string:
		return c
	case float64:
		return strconv.Itoa(int(c))
	}
	return ""
}

// status returns the HTTP status that some gateways put into an error's code.
func (e *apiError) status() int {
	n, _ := strconv.Atoi(e.code())
	return n
}

// final are the codes and types of errors that another attempt cannot fix.
var final = []string{
	"context_length_exceeded", "insufficient_quota", "billing_hard_limit_reached", "invalid_request_error", "invalid_api_key",
	"authentication_error", "permission_error", "not_found_error", "model_not_found", "content_filter", "content_policy_violation",
	"exceed_context_size_error",
}

// refused returns the error of a response that is not a 200. What the provider says goes
// only to the log, since it may repeat prompts.
func (m *Model) refused(res *http.Response, body []byte) error {
	body = unwrapped(body)
	var v struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(body, &v) != nil || v.Error == nil {
		v.Error = errorOf(body)
	}
	if v.Error.Message == "" {
		// Proxies answer with HTML or JSON of their own.
		v.Error.Message = string(body)
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return m.redirected(res)
	}
	e := m.classify(res.StatusCode, v.Error)
	e.RetryAfter = m.retryAfter(res.Header)
	return e
}

// redirected returns the error of a response that points somewhere else. Of the address
// only scheme and host are logged, because the rest may hold a secret.
func (m *Model) redirected(res *http.Response) error {
	to := "nowhere"
	if u, err := res.Location(); err == nil {
		to = u.Scheme + "://" + u.Host
	}
	return &holdfast.ModelError{
		Public: "The model's provider redirects to another address, which the server does not follow; the server's operator must check the base URL.",
		Err:    errors.New(m.quote(fmt.Sprintf("status %d, a redirect to %s", res.StatusCode, to))),
	}
}

// classify decides whether another attempt can help, and what the caller may read.
func (m *Model) classify(status int, a *apiError) *holdfast.ModelError {
	e := &holdfast.ModelError{Err: errors.New(m.quote(fmt.Sprintf("status %d, type %q, code %q: %s", status, a.Type, a.code(), a.Message)))}
	is := func(words ...string) bool { return slices.Contains(words, a.Type) || slices.Contains(words, a.code()) }
	switch {
	case is("context_length_exceeded", "exceed_context_size_error") || a.saysTooLong(status):
		e.Public = "The conversation is too long for the model. Start a new one, or choose a model that takes more."
	case is("insufficient_quota", "billing_hard_limit_reached") || status == http.StatusPaymentRequired:
		e.Public = "The account at the model's provider has no quota left; the server's operator must renew it."
	case is("content_filter", "content_policy_violation"):
		e.Public = "The model's provider refused the request because of its content policy."
	case status == http.StatusUnauthorized || status == http.StatusForbidden || is("invalid_api_key", "authentication_error", "permission_error"):
		e.Public = "The model's provider refused the server's key; the server's operator must check it."
	case status == http.StatusNotFound || is("model_not_found", "not_found_error"):
		e.Public = "The model's provider does not know the configured model; the server's operator must check its name and the base URL."
	case status == http.StatusTooManyRequests:
		e.Public, e.Retryable = "The model's provider limits the rate of requests.", true
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooEarly:
		e.Public, e.Retryable = "The model's provider is overloaded or broken.", true
	case status == http.StatusOK:
		// In the middle of a stream there is no status.
		e.Public, e.Retryable = "The model's provider broke off its answer.", !is(final...)
	default:
		e.Public = "The model's provider refused the request."
	}
	return e
}

// saysTooLong reports whether an error's text says that the conversation is too long:
// vLLM and llama.cpp have, or had, no code for it.
func (e *apiError) saysTooLong(status int) bool {
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge && status != http.StatusOK {
		return false
	}
	text := strings.ToLower(e.Message)
	return strings.Contains(text, "context length") || strings.Contains(text, "context size")
}

// quote shortens a provider's text for the log, and keeps secrets out of it.
func (m *Model) quote(text string) string {
	for _, s := range m.secrets {
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// retryAfter reads how long to wait: retry-after-ms, or Retry-After in seconds
// or as a date (RFC 9110, section 10.2.3).
func (m *Model) retryAfter(h http.Header) time.Duration {
	var d float64
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = ms * float64(time.Millisecond)
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		d = s * float64(time.Second)
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = float64(at.Sub(m.now()))
	}
	if !(d > 0) { // which includes what is not a number
		return 0
	}
	return time.Duration(min(d, float64(maxRetryAfter)))
}

// failed turns any error into a ModelError: one that is not one yet comes from a
// connection that failed or broke, where another attempt may help.
func (m *Model) failed(ctx context.Context, err error) error {
	var known *holdfast.ModelError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &known):
		return err
	default:
		return &holdfast.ModelError{Retryable: true, Public: "The connection to the model's provider failed.", Err: errors.New(m.quote(err.Error()))}
	}
}

func truncated(cause error) error {
	return &holdfast.ModelError{
		Retryable: true, Public: "The model's answer was cut off.",
		Err: errors.Join(holdfast.ErrTruncated, cause),
	}
}

// tooMuch says what of an answer is larger than the server takes.
func tooMuch(what string) error {
	return &holdfast.ModelError{Public: "The model's provider was stopped because it sent too much: " + what + ".", Err: errTooLong}
}

// tooLong is tooMuch for a piece of more than maxLine.
func tooLong() error { return tooMuch(fmt.Sprintf("more than %d MiB in one piece", maxLine>>20)) }
