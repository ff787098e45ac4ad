// Package webhook hands the calls of a contract out by HTTP: each call is POSTed to an
// address of yours, with the one-time URL to which the result is to be sent.
//
//	deliver, err := webhook.New(webhook.Options{URL: "https://tickets.example/calls", Secret: secret})
//	tool := contract.New[Args]("approve", "…", holdfast.Outside{Deliver: deliver})
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/idempotency"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/secret"
)

// Options say where calls are sent.
type Options struct {
	// URL is where each call is POSTed to. It may be private, because nobody but who sets it
	// has a say in it. Redirects are not followed: the body has a URL that is a secret, which
	// is also why it had better be https.
	URL string `json:"url"`
	// Headers are further headers of each request.
	Headers map[string]string `json:"headers,omitempty"`
	// Secret, if set, signs each request; see [HeaderSignature].
	Secret secret.Text `json:"-"`
	// Timeout bounds one try; default 10s. Tries go on until the tool's own time limit.
	Timeout time.Duration `json:"-"`
	// Transport sends the requests; default http.DefaultTransport.
	Transport http.RoundTripper `json:"-"`
	// Now is the clock of the signatures; default time.Now.
	Now func() time.Time `json:"-"`
}

// Delivery is the body of a request.
type Delivery struct {
	// URL is where the result is sent, once: POST {"result": …} or {"error": "…"} as JSON.
	URL string `json:"url"`
	// Key is the same however often the call is delivered.
	Key string `json:"key"`
	// Tool is the name of the contract.
	Tool string `json:"toolName"`
	// Arguments are those of the call.
	Arguments json.RawMessage `json:"arguments"`
	// ID is the call's id.
	ID string `json:"toolCallId"`
	// Thread is the thread's id.
	Thread string `json:"threadId"`
	// Run is the id of the run that made the call.
	Run string `json:"runId"`
	// Tenant is that of the user on whose behalf the call is made.
	Tenant string `json:"tenant"`
	// User is the user's id.
	User string `json:"user"`
	// ExpiresAt is until when a result is taken; missing without a limit.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// HeaderSignature is the header that shows that a request comes from this server and is
// not old: "t=SECONDS,v1=HEX". SECONDS is the time since 1970, and HEX the HMAC-SHA256,
// under the secret, of SECONDS, a full stop and the body.
const HeaderSignature = "Holdfast-Signature"

const (
	defaultTimeout = 10 * time.Second
	firstPause     = 500 * time.Millisecond
	longestPause   = 15 * time.Second
	maxAnswer      = 64 << 10 // bytes that are read so that a connection can be used again
)

// Validate returns an error for what cannot be, naming the field.
func (o Options) Validate() error {
	u, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		return errors.New("url is missing")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("url cannot be used: write it like https://tickets.example/calls")
	case o.Timeout < 0:
		return errors.New("timeout is negative")
	}
	for name, value := range o.Headers {
		if !isToken(name) || strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("headers: %q cannot be sent: the name is none that HTTP allows, or the "+
				"value has a line ending", name)
		}
		if slices.Contains([]string{"content-type", "content-length", "host", "idempotency-key",
			strings.ToLower(HeaderSignature)}, strings.ToLower(name)) {
			return fmt.Errorf("headers: %s is set by the server", name)
		}
	}
	return nil
}

// isToken reports whether a text is a name that HTTP allows (RFC 9110, 5.6.2).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
	})
}

// New returns a function for [holdfast.Outside].Deliver. It returns once an answer of 2xx has
// come. After a failure that may pass, it tries again until the call's time is up: no
// connection, 408, 429 and 5xx. Each try carries the call's key as its Idempotency-Key.
func New(o Options) (func(context.Context, holdfast.OutsideCall) error, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &sender{Options: o, client: &http.Client{
		Transport:     idempotency.Transport{Base: o.Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return s.deliver, nil
}

// sender sends calls.
type sender struct {
	Options
	client *http.Client
}

func (s *sender) deliver(ctx context.Context, call holdfast.OutsideCall) error {
	c := call.Call
	d := Delivery{
		URL:       call.URL.Reveal(),
		Key:       c.Key,
		Tool:      c.Name,
		Arguments: c.Arguments,
		ID:        c.ID,
		Thread:    c.Thread,
		Run:       c.Run,
		Tenant:    c.Principal.Tenant,
		User:      c.Principal.User,
		ExpiresAt: call.ExpiresAt,
	}
	if len(d.Arguments) == 0 {
		d.Arguments = json.RawMessage("{}")
	}
	body, err := json.Marshal(d)
	if err != nil {
		return failed("its arguments are not JSON", err)
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		again, after, err := s.try(ctx, body)
		if err == nil || !again {
			return err
		}
		if after > 0 {
			pause = min(after, longestPause)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// try sends a call once. again says whether another try can help, and after when, if the
// other side has said so.
func (s *sender) try(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return false, 0, failed("the address cannot be used", err)
	}
	for name, value := range s.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	headers.AddTraceparent(ctx, r.Header)
	if !s.Secret.IsZero() {
		r.Header.Set(HeaderSignature, s.sign(body))
	}
	res, err := s.client.Do(r)
	if err != nil {
		var with *url.Error
		if errors.As(err, &with) {
			err = with.Err // without the address, which may have a secret
		}
		return true, 0, failed("nobody answers", err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // only for the connection
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return false, 0, nil
	case res.StatusCode == http.StatusRequestTimeout,
		res.StatusCode == http.StatusTooManyRequests,
		res.StatusCode >= 500:
		again = true
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	return again, time.Duration(max(0, seconds)) * time.Second,
		failed(fmt.Sprintf("the answer is %d", res.StatusCode), errAnswer)
}

// sign returns the signature of a body.
func (s *sender) sign(body []byte) string {
	at := strconv.FormatInt(s.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.Secret.Reveal()))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// errAnswer is the cause of a failure that an answer says all about. An error without a cause
// is the model's alone, and this is for the operator to mend.
var errAnswer = errors.New("the webhook does not take it")

// failed returns an error whose text the model may read, with its cause for the log.
func failed(why string, cause error) error {
	return holdfast.Errorf("webhook_failed", "The call could not be handed out: %s.", why).Wrap(cause)
}
