package server_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// approving is an agent that asks for an approval, which is given from outside.
func approving(o holdfast.Outside) holdfast.Agent {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{ID: "c1", Name: "approve", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	return holdfast.Agent{
		Name:  "a",
		Model: model,
		Tools: []holdfast.Tool{contract.New[struct{}]("approve", "asks for an approval", o)},
	}
}

// TestOutsideCall: over HTTP and with keys, a call is handed out with a URL that begins with
// the public one, its user cannot finish it, a service can, and the log says who did.
func TestOutsideCall(t *testing.T) {
	var handed atomic.Pointer[holdfast.OutsideCall]
	c := callers{
		"alice":   role("alice", access.RoleUser),
		"ops":     role("ops", access.RoleServerOperator),
		"finance": role("finance", access.RoleService),
	}
	h, s, log := keyed(t, c, func(c *server.Config) {
		c.PublicURL = "https://agents.example/holdfast/"
		c.Agents = []holdfast.Agent{
			approving(holdfast.Outside{Deliver: func(_ context.Context, call holdfast.OutsideCall) error {
				handed.Store(&call)
				return nil
			}}),
		}
	})
	send := func(key, path, body string) (int, map[string]any) {
		t.Helper()
		r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		res := must(http.DefaultClient.Do(r))(t)
		defer res.Body.Close()
		var answer map[string]any
		if b := must(io.ReadAll(res.Body))(t); json.Unmarshal(b, &answer) != nil {
			t.Fatalf("%s: %s", path, b)
		}
		return res.StatusCode, answer
	}
	for _, thread := range []string{"t1", "t2"} {
		code, waiting := send("alice", "/runs",
			`{"threadId":"`+thread+`","runId":"r1","messages":[{"id":"m1","role":"user","content":"go"}]}`)
		calls, _ := waiting["outsideCalls"].([]any)
		if code != http.StatusOK || waiting["outcome"] != "success" || len(calls) != 1 {
			t.Fatalf("%d %v", code, waiting)
		}
	}
	const result = `{"result":{"approved":true}}`
	for key, want := range map[string]int{"": http.StatusUnauthorized, "alice": http.StatusForbidden,
		"ops": http.StatusNotFound} {
		if code, refused := send(key, "/threads/t1/calls/c1/result", result); code != want {
			t.Errorf("%q: %d %v", key, code, refused)
		}
	}
	if code, done := send("finance", "/threads/t1/calls/c1/result", result); code != http.StatusOK ||
		done["toolName"] != "approve" {
		t.Errorf("by key: %d %v", code, done)
	}
	to := must(url.Parse(handed.Load().URL.Reveal()))(t)
	if !strings.HasPrefix(to.String(), "https://agents.example/holdfast/calls?token=hfc_") {
		t.Fatalf("the URL is %s", to)
	}
	if code, done := send("", "/calls?"+to.RawQuery, `{"error":"no money"}`); code != http.StatusOK ||
		done["threadId"] != "t2" {
		t.Errorf("by URL: %d %v", code, done)
	}
	who := c["finance"]
	if _, err := s.FinishCall(t.Context(), who, "t1", "c1",
		threads.OutsideResult{Error: "no", Failed: true}); holdfast.AsError(err).Code != codes.CallAlreadyAnswered {
		t.Errorf("another result: %v", err)
	}
	wait.Until(t, "the result", func() bool {
		info := must(s.Thread(t.Context(), c["alice"], "t2"))(t)
		return info.Status == threads.StatusIdle && len(info.OutsideCalls) == 0
	})
	if messages := must(s.Messages(t.Context(), c["alice"], "t2"))(t); len(messages) != 4 ||
		!strings.Contains(string(messages[2]), "no money") {
		t.Errorf("the history is %s", messages)
	}
	text := log.String()
	for _, line := range []string{
		`msg=audit who=acme/finance action=finish thread=t1 result=ok call=c1`,
		`msg=audit who=acme/alice action=finish thread=t1 result=forbidden call=c1`,
		`msg=audit who="one-time URL" action=finish thread=t2 result=ok call=c1`,
		`msg="a result from outside is not taken" thread=t1`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the log does not say %s:\n%s", line, text)
		}
	}
	if strings.Contains(text, to.Query().Get("token")) || strings.Contains(text, "no money") {
		t.Error("the log has a token or a result")
	}
}

// TestOutsideConfig: what cannot be is refused at the start, with its place.
func TestOutsideConfig(t *testing.T) {
	for want, change := range map[string]func(*server.Config){
		`tool "approve": in Outside the field FinishedBy is "read"`: func(c *server.Config) {
			c.Agents[0].Tools = []holdfast.Tool{raw{holdfast.ToolSpec{Name: "approve",
				Outside: &holdfast.Outside{FinishedBy: access.RoleRead}}}}
		},
		`tool "approve": in Outside the field Result`: func(c *server.Config) {
			c.Agents[0].Tools = []holdfast.Tool{raw{holdfast.ToolSpec{Name: "approve",
				Outside: &holdfast.Outside{Result: json.RawMessage(`{"type":7}`)}}}}
		},
		`tool "approve": in Outside the field ExpiresAfter is -1s`: func(c *server.Config) {
			c.Agents[0].Tools = []holdfast.Tool{raw{holdfast.ToolSpec{Name: "approve",
				Outside: &holdfast.Outside{ExpiresAfter: -time.Second}}}}
		},
		"the public URL": func(c *server.Config) { c.PublicURL = "agents.example" },
	} {
		cfg := config(t)
		change(&cfg)
		if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// raw is a tool that is only a specification.
type raw struct{ spec holdfast.ToolSpec }

func (r raw) Spec() holdfast.ToolSpec { return r.spec }

func (r raw) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return holdfast.ToolResult{}, nil
}
