package http

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

func (f *fake) Finish(
	_ context.Context, who holdfast.Principal, thread, call string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f.finished = append(f.finished, finishedCall{who.User + " " + thread + " " + call, r})
	return &threads.FinishedCall{
		Thread:     thread,
		ID:         call,
		Tool:       "approve",
		Run:        "r2",
		FinishedAt: time.Unix(0, 1).UTC(),
	}, f.err
}

func (f *fake) Expects(_ context.Context, token string) error {
	if strings.HasPrefix(token, "hfc_guess.") {
		return holdfast.Errorf("not_found", "This URL finishes no call.")
	}
	return nil
}

func (f *fake) FinishByToken(_ context.Context, token string, r threads.OutsideResult) (*threads.FinishedCall, error) {
	f.finished = append(f.finished, finishedCall{token, r})
	return &threads.FinishedCall{Thread: "t", ID: "c", Tool: "approve", FinishedAt: time.Unix(0, 1).UTC()}, f.err
}

// finishedCall is what was finished, and how.
type finishedCall struct {
	what   string
	result threads.OutsideResult
}

// TestFinish: the routes take a result or an error, from who has a key or the URL.
func TestFinish(t *testing.T) {
	f := &fake{}
	s := serve(t, f, func(c *Config) {
		inner := c.Authenticate
		c.Door.LoopbackOnly = false
		c.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
			if r.Header.Get("Authorization") == "" {
				return holdfast.Principal{}, holdfast.Errorf("unauthenticated", "no key")
			}
			return inner(r)
		}
	})
	const byID, byURL = "/threads/t%2F1/calls/call%2F1/result", "/calls?token=hfc_abc.def"
	for _, c := range []struct {
		path, body string
		key        bool
		status     int
		what       string
		want       threads.OutsideResult
	}{
		{byID, `{"result": {"n": 9007199254740993}}`, true, 200, "alice t/1 call/1",
			threads.OutsideResult{Result: json.RawMessage(`{"n": 9007199254740993}`)}},
		{byID, `{"error": "closed"}`, true, 200, "alice t/1 call/1",
			threads.OutsideResult{Error: "closed", Failed: true}},
		{byID, `{"error": ""}`, true, 200, "alice t/1 call/1", threads.OutsideResult{Failed: true}},
		{byID, `{"result": 1}`, false, 401, "", threads.OutsideResult{}},
		{byURL, `{"result": "yes"}`, false, 200, "hfc_abc.def",
			threads.OutsideResult{Result: json.RawMessage(`"yes"`)}},
		{byURL, `{"result": null}`, false, 200, "hfc_abc.def", threads.OutsideResult{Result: json.RawMessage(`null`)}},
		{"/calls", `{"result": 1}`, false, 400, "", threads.OutsideResult{}},
		{"/calls?token=hfc_guess.def", `{"result": 1}`, false, 404, "", threads.OutsideResult{}},
		{byURL, `{"result": 1, "error": "x"}`, false, 400, "", threads.OutsideResult{}},
		{byURL, `{}`, false, 400, "", threads.OutsideResult{}},
		{byURL, ``, false, 400, "", threads.OutsideResult{}},
		{byURL, `{"results": 1}`, false, 400, "", threads.OutsideResult{}},
		{byURL, `{"error": null}`, false, 400, "", threads.OutsideResult{}},
		{byURL, `{"error": 1}`, false, 400, "", threads.OutsideResult{}},
		{byURL, `[1]`, false, 400, "", threads.OutsideResult{}},
		{byURL, `{"result": "` + strings.Repeat("x", 2<<10) + `"}`, false, 413, "", threads.OutsideResult{}},
	} {
		f.finished = nil
		header := []string{"Content-Type", "application/json"}
		if c.key {
			header = append(header, "Authorization", "Bearer k")
		}
		res, body := do(t, "POST", s.URL+c.path, c.body, header...)
		if res.StatusCode != c.status {
			t.Errorf("%s %.40s: %d %s", c.path, c.body, res.StatusCode, body)
			continue
		}
		if c.what == "" && len(f.finished) > 0 ||
			c.what != "" && (len(f.finished) != 1 || f.finished[0].what != c.what ||
				!bytes.Equal(f.finished[0].result.Result, c.want.Result) ||
				f.finished[0].result.Failed != c.want.Failed || f.finished[0].result.Error != c.want.Error) {
			t.Errorf("%s %s: finished %+v", c.path, c.body, f.finished)
		}
	}
	if res, _ := do(t, "POST", s.URL+byURL, `{"result":1}`, "Content-Type",
		"text/plain"); res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d", res.StatusCode)
	}
}

// TestFinishLogsNoToken: whatever becomes of a request to a one-time URL, the log does not
// have what makes it one.
func TestFinishLogsNoToken(t *testing.T) {
	var log bytes.Buffer
	f := &fake{}
	s := serve(t, f, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(io.MultiWriter(&log), &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, err := range []error{nil, holdfast.Errorf("store_unavailable", "gone"), holdfast.Errorf("not_found", "no"),
		context.DeadlineExceeded} {
		f.err = err
		do(t, "POST", s.URL+"/calls?token=hfc_abc.verysecret", `{"result":"alsosecret"}`, "Content-Type",
			"application/json")
	}
	s.Close()
	if text := log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "route=/calls") {
		t.Errorf("the log: %s", text)
	}
}

// TestOnlyPostFinishes: a client that only looks at a one-time URL, such as the scanner of a
// mail client or a browser that somebody pastes it into, finishes nothing, and is told how.
func TestOnlyPostFinishes(t *testing.T) {
	f := &fake{}
	s := serve(t, f, nil)
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"} {
		res, said := do(t, method, s.URL+"/calls?token=hfc_abc.secret", "", "X-HTTP-Method-Override", "POST")
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" || len(f.finished) > 0 ||
			strings.Contains(said, "secret") {
			t.Errorf("%s: %d %v %s", method, res.StatusCode, res.Header, said)
		}
		if res, _ := do(t, method, s.URL+"/calls?token=hfc_abc.secret", `{"result":true}`, "Content-Type",
			"application/json"); res.StatusCode < 400 || len(f.finished) > 0 {
			t.Errorf("%s with a body: %d", method, res.StatusCode)
		}
	}
	if res, _ := do(t, "PUT", s.URL+"/threads/t%2F1", "{}", "Content-Type",
		"application/json"); res.Header.Get("Allow") != "GET, PATCH, DELETE" {
		t.Errorf("a thread: %v", res.Header)
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x"} {
		if res, _ := do(t, "POST", s.URL+"/calls?token=hfc_abc.secret", `{"result":true}`, "Content-Type",
			kind); res.StatusCode != http.StatusUnsupportedMediaType || len(f.finished) > 0 {
			t.Errorf("%q: %d", kind, res.StatusCode)
		}
	}
	if res, _ := do(t, "POST", s.URL+"/calls?token=hfc_abc.secret", `{"result":true}`, "Content-Type",
		"application/json; charset=utf-8"); res.StatusCode != http.StatusOK ||
		res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", res.Header)
	}
}
