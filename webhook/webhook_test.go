package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/webhook"
)

// answers is a transport that answers with one status after the other; 0 is no answer.
type answers struct {
	status   []int
	header   http.Header
	requests []*http.Request
	bodies   []string
	at       []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.requests, a.bodies, a.at = append(a.requests, r), append(a.bodies, string(body)), append(a.at, time.Now())
	status := a.status[min(len(a.requests), len(a.status))-1]
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	header := a.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: status,
		Header:     header,
		Body:       io.NopCloser(strings.NewReader("a long story")),
	}, nil
}

func call() holdfast.OutsideCall {
	return holdfast.OutsideCall{
		Call: holdfast.ToolCall{
			ID: "c1", Name: "approve", Arguments: json.RawMessage(`{"amount":7}`), Key: "thekey", Thread: "t", Run: "r",
			Principal: holdfast.Principal{Tenant: "acme", User: "alice"},
		},
		URL:       secret.New("https://agents.example/calls?token=hfc_x.y"),
		ExpiresAt: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
	}
}

// parent is the trace context of the run.
const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func deliver(t *testing.T, o webhook.Options, within time.Duration) error {
	t.Helper()
	f, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := holdfast.ContextWithRun(t.Context(),
		&holdfast.RunContext{Iteration: func() holdfast.Iteration { return holdfast.Iteration{Traceparent: parent} }})
	ctx, cancel := context.WithTimeout(holdfast.ContextWithCall(ctx, call().Call, nil), within)
	defer cancel()
	return f(ctx, call())
}

// TestDelivery: the request has the call, its URL, its key, the run's trace, and a signature of the very
// bytes.
func TestDelivery(t *testing.T) {
	a := &answers{status: []int{202}}
	at := time.Unix(1_800_000_000, 0)
	o := webhook.Options{
		URL:       "https://tickets.example/calls?team=7",
		Headers:   map[string]string{"X-Team": "finance"},
		Secret:    secret.New("s3cret"),
		Transport: a,
		Now:       func() time.Time { return at },
	}
	if err := deliver(t, o, time.Minute); err != nil {
		t.Fatal(err)
	}
	r := a.requests[0]
	want := `{"url":"https://agents.example/calls?token=hfc_x.y","key":"thekey","toolName":"approve",` +
		`"arguments":{"amount":7},"toolCallId":"c1","threadId":"t","runId":"r","tenant":"acme","user":"alice",` +
		`"expiresAt":"2026-11-22T00:00:00Z"}`
	if a.bodies[0] != want || r.Method != "POST" || r.URL.String() != o.URL || r.Header.Get("X-Team") != "finance" ||
		r.Header.Get("Content-Type") != "application/json" || r.Header.Get("traceparent") != parent {
		t.Errorf("%s %s %v\n%s", r.Method, r.URL, r.Header, a.bodies[0])
	}
	//lint:ignore SA1008 see idempotency.Transport
	if key := r.Header["idempotency-key"]; len(key) != 1 || key[0] != "thekey" {
		t.Errorf("the key is %q", key)
	}
	mac := hmac.New(sha256.New, []byte("s3cret"))
	mac.Write([]byte("1800000000." + a.bodies[0]))
	if got, want := r.Header.Get(webhook.HeaderSignature),
		"t=1800000000,v1="+hex.EncodeToString(mac.Sum(nil)); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

// TestTries: what may help later is tried again, with the pause that the other side asks
// for; the rest is an error at once. No error has the address, the URL or the answer.
func TestTries(t *testing.T) {
	for name, c := range map[string]struct {
		status []int
		header http.Header
		tries  int
		took   time.Duration
		fails  string
	}{
		"at once": {status: []int{204}, tries: 1},
		"after some trouble": {status: []int{0, 500, 503, 429, 408, 200}, tries: 6,
			took: (500 + 1000 + 2000 + 4000 + 8000) * time.Millisecond},
		"asked to wait": {status: []int{503, 200}, header: http.Header{"Retry-After": {"3"}}, tries: 2,
			took: 3 * time.Second},
		"asked too much": {status: []int{503, 200}, header: http.Header{"Retry-After": {"86400"}}, tries: 2,
			took: 15 * time.Second},
		"no such place": {status: []int{404}, tries: 1, fails: "the answer is 404"},
		"moved": {status: []int{307}, header: http.Header{"Location": {"https://elsewhere.example"}},
			tries: 1, fails: "the answer is 307"},
		"never": {status: []int{0}, tries: 5, took: 10 * time.Second, fails: "nobody answers"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{status: c.status, header: c.header}
				began := time.Now()
				err := deliver(t, webhook.Options{URL: "https://tickets.example/calls?key=hidden", Transport: a},
					max(10*time.Second, c.took+time.Second))
				if c.fails == "nobody answers" {
					c.took = time.Since(began)
					if len(a.requests) < 4 || c.took < 10*time.Second {
						t.Errorf("%d tries in %s", len(a.requests), c.took)
					}
				} else if len(a.requests) != c.tries || time.Since(began) != c.took {
					t.Errorf("%d tries in %s", len(a.requests), time.Since(began))
				}
				for _, b := range a.bodies {
					if b != a.bodies[0] {
						t.Errorf("another try sends %s", b)
					}
				}
				switch {
				case (err != nil) != (c.fails != ""):
					t.Errorf("%v", err)
				case err != nil:
					if text := err.Error(); !strings.Contains(text, c.fails) || strings.Contains(text, "hidden") ||
						strings.Contains(text, "hfc_") || strings.Contains(text, "story") {
						t.Errorf("the error is %s", text)
					}
					var public *holdfast.Error
					if !errors.As(err, &public) || public.Err == nil {
						t.Errorf("%v has no cause, so the server does not log it", err)
					}
				}
			})
		})
	}
}

func TestValidate(t *testing.T) {
	for url, want := range map[string]string{"": "url is missing", "ftp://x": "url cannot", "//x": "url cannot",
		"https://": "url cannot", "https://x\x00": "url cannot", "https://x": ""} {
		if err := (webhook.Options{URL: url}).Validate(); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
	for name, value := range map[string]string{"": "x", "X Team": "x", "X-Team:": "x", "X-Team\r\nHost": "x",
		"X-Team": "hidden\r\nX-Admin: 1", "X-Key": "hidden\x00", "Té": "x"} {
		o := webhook.Options{URL: "https://x", Headers: map[string]string{name: value}}
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), "headers: ") ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %q: %v", name, value, err)
		}
	}
	for _, o := range []webhook.Options{{URL: "https://x", Timeout: -1},
		{URL: "https://x", Headers: map[string]string{"idempotency-Key": "1"}}} {
		if _, err := webhook.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
