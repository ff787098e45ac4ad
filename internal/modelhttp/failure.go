package modelhttp

// Failures of providers: how they are recognized, what may be tried next, and what the
// caller may read about them. Providers differ in their words, but no word means one
// thing here and another there, so there is one table.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

const (
	// maxErrorBody bounds how much of an error's body is read, maxErrorText how much of
	// it is logged, in bytes.
	maxErrorBody = 64 << 10
	maxErrorText = 500
)

// Failure is what a provider says of a failure.
type Failure struct {
	// Status is the HTTP status; 0 within an answer, where there is none of its own.
	Status int
	// Type and Code are the provider's words for it, Message is its text for people.
	Type, Code, Message string
	// Kind is set if the provider's package knows better than the table.
	Kind failure.Kind
	// Wait is how long the body asks to wait, if it does.
	Wait time.Duration
}

// Fail returns the error of a failure within an answer.
func (a *Answer) Fail(f Failure) error {
	e := a.client.classify(f)
	if e.RetryAfter = bounded(f.Wait); e.RetryAfter == 0 && e.Kind == failure.Rate {
		e.RetryAfter = waitInWords(f.Message)
	}
	return e
}

// apiError is what a provider says in an error, as an object or as text.
type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"`
	// Status is Gemini's type.
	Status  any             `json:"status"`
	Details json.RawMessage `json:"details"`
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

// ParseFailure reads what a provider says of a failure: an object that holds it as its
// member error, or the error itself, as an object or as text. In a code that is a number
// some gateways have an HTTP status, which is taken if there is none.
func ParseFailure(status int, data []byte) Failure {
	data = unwrapped(data)
	var v struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(data, &v) != nil || v.Error == nil {
		v.Error = &apiError{}
		if json.Unmarshal(data, v.Error) != nil {
			v.Error.Message = string(data)
		}
	}
	e := v.Error
	if e.Message == "" {
		// Proxies answer with HTML or JSON of their own.
		e.Message = string(data)
	}
	f := Failure{Status: status, Type: e.Type, Message: e.Message}
	if s, ok := e.Status.(string); ok && f.Type == "" {
		f.Type = s
	}
	switch c := e.Code.(type) {
	case string:
		f.Code = c
	case float64:
		if f.Code = strconv.Itoa(int(min(max(c, -1), 1<<20))); f.Status == 0 && c >= 400 && c < 600 {
			f.Status = int(c)
		}
	}
	if n, err := strconv.Atoi(f.Code); err == nil && f.Status == 0 && n >= 400 && n < 600 {
		f.Status = n
	}
	f.details(e.Details)
	return f
}

// details takes what Gemini says of a failure's cause: which quota it is, when to come
// back, and that the key is wrong.
func (f *Failure) details(raw json.RawMessage) {
	var details []struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
		Reason     string `json:"reason"`
		Violations []struct {
			QuotaID string `json:"quotaId"`
		} `json:"violations"`
	}
	if json.Unmarshal(raw, &details) != nil {
		return
	}
	for _, d := range details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			f.Wait = wait
		}
		if d.Reason == "API_KEY_INVALID" { // its status is 400
			f.Kind = failure.Auth
		}
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				f.Kind = failure.Quota
			}
		}
	}
}

// unwrapped returns the only element of a list, since Gemini sends its errors in a list.
func unwrapped(data []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return data
}

// refused returns the error of a response that is not a 200. The provider's own text goes only
// to the log, since it may repeat prompts.
func (c *Client) refused(res *http.Response, body []byte) error {
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return c.redirected(res)
	}
	f := ParseFailure(res.StatusCode, body)
	e := c.classify(f)
	e.RequestID = c.quote(requestID(res.Header))
	// The provider knows better than its status whether another attempt can help.
	switch res.Header.Get("X-Should-Retry") {
	case "false":
		e.Retryable = false
	case "true":
		if e.Kind == failure.Invalid {
			e.Kind = failure.Overloaded
		}
		e.Retryable = e.Kind == failure.Overloaded || e.Kind == failure.Rate
	}
	if e.RetryAfter = retryAfter(res.Header, c.now()); e.RetryAfter == 0 {
		e.RetryAfter = bounded(f.Wait)
	}
	if e.RetryAfter == 0 && e.Kind == failure.Rate {
		if e.RetryAfter = resetAfter(res.Header, c.now()); e.RetryAfter == 0 {
			e.RetryAfter = waitInWords(f.Message)
		}
	}
	return e
}

// redirected returns the error of a response that points somewhere else. Of the address
// only scheme and host are logged, because the rest may hold a secret.
func (c *Client) redirected(res *http.Response) error {
	to := "nowhere"
	if u, err := res.Location(); err == nil {
		to = u.Scheme + "://" + u.Host
	}
	return &holdfast.ModelError{
		Kind:   failure.Auth,
		Status: res.StatusCode,
		Public: "The model's provider redirects to another address, which the server does not follow; the server's " +
			"operator must check the base URL.",
		Err: errors.New(c.quote(fmt.Sprintf("status %d, a redirect to %s", res.StatusCode, to))),
	}
}

// words are parts of the types and codes of failures, by kind, the first that fits.
var words = []struct {
	kind  failure.Kind
	words []string
}{
	{failure.TooLong, []string{"context_length_exceeded", "exceed_context_size_error", "request_too_large"}},
	{
		failure.Quota,
		[]string{
			"insufficient_quota",
			"exceeded_current_quota",
			"billing",
			"credit_balance",
			"spend_limit",
			"spending_limit",
		},
	},
	{failure.Refused, []string{"content_filter", "invalid_prompt", "_policy"}},
	{
		failure.Auth,
		[]string{
			"invalid_api_key",
			"authentication_error",
			"permission_error",
			"model_not_found",
			"not_found_error",
			"unauthenticated",
			"permission_denied",
		},
	},
	{failure.Rate, []string{"rate_limit", "slow_down", "resource_exhausted", "too_many_requests"}},
	{
		failure.Overloaded,
		[]string{"overloaded", "api_error", "timeout_error", "server_error", "unavailable", "deadline_exceeded"},
	},
	{
		failure.Invalid,
		[]string{
			"invalid_request",
			"invalid_argument",
			"invalid_encrypted_content",
			"invalid_image",
			"image_parse_error",
		},
	},
}

// kind finds the kind of a failure: by the provider's words where a status would mislead,
// then by the status, then by any word.
func (f *Failure) kind() failure.Kind {
	said := f.word()
	switch {
	case f.Kind != "":
		return f.Kind
	case said == failure.TooLong || f.saysTooLong():
		return failure.TooLong
	case said == failure.Quota || f.Status == http.StatusPaymentRequired || f.says(quotaWords):
		return failure.Quota
	case said == failure.Refused || f.says(refusedWords):
		return failure.Refused
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden || f.Status == http.StatusNotFound ||
		said == failure.Auth:
		return failure.Auth
	case f.Status == http.StatusTooManyRequests || said == failure.Rate:
		return failure.Rate
	case f.Status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly},
		f.Status) || said == failure.Overloaded:
		return failure.Overloaded
	case said == "" && f.Status < 400:
		// In the middle of a stream there is no status, and any reason may be a passing one.
		return failure.Overloaded
	}
	return failure.Invalid
}

// word returns the kind that the provider's type or code names; empty for none.
func (f *Failure) word() failure.Kind {
	said := []string{strings.ToLower(f.Code), strings.ToLower(f.Type)}
	for _, w := range words {
		for _, word := range w.words {
			if strings.Contains(said[0], word) || strings.Contains(said[1], word) {
				return w.kind
			}
		}
	}
	return ""
}

// Phrases in a provider's text where there is no code of its own: in an error that has only
// the code of an invalid request, or of a lack of rights.
var (
	tooLongWords = []string{
		"context length",
		"context size",
		"context window",
		"context limit",
		"prompt is too long",
		"input is too long",
		"maximum prompt length",
		"maximum number of tokens",
		"request too large",
	}
	quotaWords   = []string{"credit balance is too low", "reached your specified api usage limits"}
	refusedWords = []string{"content filtering policy", "input was flagged"}
)

// says reports whether the text has one of these words in it.
func (f *Failure) says(words []string) bool {
	text := strings.ToLower(f.Message)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// saysTooLong reports whether a failure's text says that the conversation is too long.
func (f *Failure) saysTooLong() bool {
	switch f.Status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusTooManyRequests:
		// That one request takes more than a minute's tokens, or more than the account may
		// send at once; the text may be about others.
		return f.says([]string{"request too large", "required for long context requests"})
	case 0, http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity:
		return f.says(tooLongWords)
	}
	return false
}

// classify decides what may be tried next, and what the caller may read.
func (c *Client) classify(f Failure) *holdfast.ModelError {
	e := &holdfast.ModelError{Kind: f.kind(), Status: f.Status}
	if e.Status == 0 {
		e.Status = http.StatusOK
	}
	e.Err = errors.New(c.quote(fmt.Sprintf("type %q, code %q: %s", f.Type, f.Code, f.Message)))
	switch e.Kind {
	case failure.TooLong:
		e.Public = "The conversation is too long for the model. Start a new one, or choose a model that takes more."
	case failure.Quota:
		e.Public = "The account at the model's provider has no quota left; the server's operator must renew it."
	case failure.Refused:
		e.Public = "The model's provider refused the request because of its content policy."
	case failure.Auth:
		e.Public = "The model's provider refused the server's key; the server's operator must check it."
		if f.Status == http.StatusNotFound || strings.Contains(f.Type+f.Code, "not_found") {
			e.Public = "The model's provider does not know the configured model; the server's operator must check " +
				"its name and the base URL."
		}
	case failure.Rate:
		e.Public, e.Retryable = "The model's provider limits the rate of requests.", true
	case failure.Overloaded:
		e.Public, e.Retryable = "The model's provider is overloaded or broken.", true
		if f.Status < 400 {
			e.Public = "The model's provider broke off its answer."
		}
	default:
		e.Public = "The model's provider refused the request."
	}
	return e
}

// Refused returns the error of an answer that the model or its provider declines to give. The
// part that was shown is to be taken back.
func (a *Answer) Refused(reason string) error {
	return &holdfast.ModelError{
		Kind:   failure.Refused,
		Status: http.StatusOK,
		Public: "The model declines to answer this conversation. Change the last message, or start a new conversation.",
		Err:    errors.New(a.client.quote("the model refused: " + reason)),
	}
}

// Malformed returns the error of an answer that is complete but cannot be used, such as
// one with a call without a name. Another attempt may help.
func (a *Answer) Malformed(public string, cause error) error {
	return &holdfast.ModelError{
		Kind:      failure.Cut,
		Retryable: true,
		Status:    http.StatusOK,
		Public:    public,
		Err:       cause,
	}
}

// Quote shortens a provider's text for the log, and keeps secrets out of it.
func (a *Answer) Quote(text string) string { return a.client.quote(text) }

// quote shortens a provider's text for the log, and keeps secrets out of it.
func (c *Client) quote(text string) string {
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}
