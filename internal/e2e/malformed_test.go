package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// TestMalformedInput: every bad input gets a 4xx with JSON that says what to do,
// leaks nothing, and the server lives on.
func TestMalformedInput(t *testing.T) {
	t.Parallel()
	p := start(t, redistest.FreeAddr(t), newFile(t), "--demo-delay=0s")
	const secret = "my-secret-prompt"
	run := func(body string) *http.Request { return request(t, p, "POST", "/runs", "application/json", body) }
	messages := func(list string) *http.Request {
		return run(`{"threadId":"t","runId":"r","messages":` + list + `}`)
	}
	cases := map[string]struct {
		req    *http.Request
		status int
		code   string
	}{
		"no body":    {run(``), 400, "invalid_input"},
		"not JSON":   {run(`{"threadId":`), 400, "invalid_input"},
		"an array":   {run(`[]`), 400, "invalid_input"},
		"null":       {run(`null`), 400, "invalid_input"},
		"a number":   {run(`17`), 400, "invalid_input"},
		"two values": {run(`{"threadId":"t","runId":"r","messages":[]} {}`), 400, "invalid_input"},
		"not UTF-8": {
			run("{\"threadId\":\"t\xff\",\"runId\":\"r\",\"messages\":[]}"),
			400,
			"invalid_input",
		},
		"no threadId":       {run(`{"runId":"r","messages":[]}`), 400, "invalid_input"},
		"empty threadId":    {run(`{"threadId":"","runId":"r","messages":[]}`), 400, "invalid_input"},
		"numeric threadId":  {run(`{"threadId":7,"runId":"r","messages":[]}`), 400, "invalid_input"},
		"control character": {run(`{"threadId":"a\u0000b","runId":"r","messages":[]}`), 400, "invalid_input"},
		"long threadId": {
			run(`{"threadId":"` + strings.Repeat("x", 300) + `","runId":"r","messages":[]}`),
			400,
			"invalid_input",
		},
		"numeric runId":         {run(`{"threadId":"t","runId":7,"messages":[]}`), 400, "invalid_input"},
		"messages not a list":   {messages(`{}`), 400, "invalid_input"},
		"message not an object": {messages(`["` + secret + `"]`), 400, "invalid_input"},
		"unknown role": {
			messages(`[{"id":"1","role":"wizard","content":"` + secret + `"}]`),
			400,
			"invalid_input",
		},
		"no message id": {messages(`[{"role":"user","content":"` + secret + `"}]`), 400, "invalid_input"},
		"double message id": {
			messages(`[{"id":"1","role":"user","content":"a"},{"id":"1","role":"user","content":"b"}]`),
			400,
			"invalid_input",
		},
		"content a number":     {messages(`[{"id":"1","role":"user","content":5}]`), 400, "invalid_input"},
		"tool without call id": {messages(`[{"id":"1","role":"tool","content":"x"}]`), 400, "invalid_input"},
		"unknown call": {
			messages(`[{"id":"1","role":"user","content":"x"},{"id":"2","role":"tool",` +
				`"toolCallId":"nobody","content":"x"}]`),
			400,
			"unknown_tool_call",
		},
		"nothing to run": {messages(`[]`), 400, "nothing_to_run"},
		"ends in an answer": {
			messages(`[{"id":"1","role":"user","content":"x"},{"id":"2","role":"assistant","content":"y"}]`),
			400,
			"nothing_to_run",
		},
		"bad resume": {
			run(`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"maybe"}]}`),
			400,
			"invalid_input",
		},
		"a later protocol": {
			run(`{"threadId":"t","runId":"r","protocolVersion":"9.0","messages":[]}`),
			400,
			"invalid_input",
		},
		"unknown policy": {
			run(`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"x"}],` +
				`"forwardedProps":{"holdfast":{"onBusy":"shrug"}}}`),
			400,
			"invalid_input",
		},
		"too large": {
			run(`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"` +
				strings.Repeat("x", 17<<20) + `"}]}`),
			413,
			"payload_too_large",
		},
		"not declared as JSON": {request(t, p, "POST", "/runs", "text/plain", `{}`), 415, "unsupported_media_type"},
		"unknown agent": {
			request(t, p, "POST", "/agents/nobody/runs", "application/json",
				`{"threadId":"t","runId":"r","messages":[]}`),
			404,
			"agent_not_found",
		},
		"unknown thread": {request(t, p, "GET", "/threads/nobody", "", ""), 404, "not_found"},
		"unknown stream": {request(t, p, "GET", "/threads/nobody/stream", "", ""), 404, "not_found"},
		"unknown run":    {request(t, p, "POST", "/threads/nobody/runs/r/cancel", "", ""), 404, "not_found"},
		"bad cursor": {
			request(t, p, "GET", "/threads/nobody/runs/r/events?after=here", "", ""),
			400,
			"invalid_cursor",
		},
		"bad limit":    {request(t, p, "GET", "/threads?limit=many", "", ""), 400, "invalid_input"},
		"bad before":   {request(t, p, "GET", "/threads?before=yesterday", "", ""), 400, "invalid_input"},
		"unknown path": {request(t, p, "GET", "/nowhere", "", ""), 404, "not_found"},
		"wrong method": {request(t, p, "DELETE", "/runs", "", ""), 405, "method_not_allowed"},
		"foreign host": {
			withHost(request(t, p, "GET", "/threads", "", ""), "evil.example"),
			403,
			"forbidden_host",
		},
		"foreign origin": {
			withOrigin(request(t, p, "GET", "/threads", "", ""), "https://evil.example"),
			403,
			"forbidden_origin",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			res, err := http.DefaultClient.Do(c.req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			var body struct {
				Error struct{ Code, Message, Hint string }
			}
			if err := json.Unmarshal(raw, &body); err != nil || res.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("not JSON (%s): %s", res.Header.Get("Content-Type"), raw)
			}
			if res.StatusCode != c.status || body.Error.Code != c.code {
				t.Errorf("got %d %s, want %d %s: %s", res.StatusCode, body.Error.Code, c.status, c.code, raw)
			}
			if body.Error.Message == "" || body.Error.Hint == "" {
				t.Errorf("the error does not say what to do: %s", raw)
			}
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("the error repeats what was sent: %s", raw)
			}
		})
	}
	res, err := post(t.Context(), p.url, input("alive", "r", userMessage("u", "hello")))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the server does not live on: %v", err)
	}
	defer res.Body.Close()
	var last record
	if err := readStream(res.Body, func(r record) bool { last = r; return false }); err != nil ||
		last.kind() != "RUN_FINISHED" {
		t.Fatalf("%v %v", last, err)
	}
}

func request(t *testing.T, p *process, method, path, contentType, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req
}

func withHost(r *http.Request, host string) *http.Request {
	r.Host = host
	return r
}

func withOrigin(r *http.Request, origin string) *http.Request {
	r.Header.Set("Origin", origin)
	return r
}
