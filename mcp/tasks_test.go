package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

const (
	created = `{"resultType":"task","taskId":"t1","status":"working","createdAt":"2026-01-01T00:00:00Z",` +
		`"lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":1}`
	complete = `"resultType":"complete","taskId":"t1","createdAt":"2026-01-01T00:00:00Z",` +
		`"lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":1,`
	working  = `{` + complete + `"status":"working","statusMessage":"at it"}`
	finished = `{` + complete + `"status":"completed","result":{"content":[{"type":"text","text":"done"}]}}`
	waiting  = `{` + complete + `"status":"input_required","inputRequests":{"a":{"method":"elicitation/create",` +
		`"params":{"message":"Which size?","requestedSchema":{"type":"object"}}}}}`
)

// tasking is a fake whose tool becomes a task. states are what tasks/get answers, one after
// the other, the last one for ever; f sees each request first and may answer it.
func tasking(t *testing.T, f func(w http.ResponseWriter, m message) bool, states ...string) *fake {
	var mu sync.Mutex
	return newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		mu.Lock()
		defer mu.Unlock()
		if f != nil && f(w, m) {
			return
		}
		switch m.Method {
		case "tools/call":
			m.result(w, created)
		case "tasks/get":
			m.result(w, states[0])
			if len(states) > 1 {
				states = states[1:]
			}
		default:
			m.result(w, `{"resultType":"complete"}`)
		}
	})
}

// TestTask: a call that becomes a task is followed to its end, and its handle is kept before
// anything is asked about it.
func TestTask(t *testing.T) {
	t.Parallel()
	var recorded *agenttest.Recorded
	f := tasking(t, func(_ http.ResponseWriter, m message) bool {
		if m.Method == "tasks/get" && !has(string(recorded.Kept("c1")), `"id":"t1"`) {
			t.Error("the handle is not kept")
		}
		return false
	}, working, finished)
	s := open(t, mcp.Options{URL: f.URL})
	var ctx context.Context
	ctx, recorded = agenttest.Context(t)
	if r, err := call(t, ctx, tool(t, s, "srv_work"), holdfast.ToolCall{}); r.Text != "done" || err != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if n := len(recorded.Notices()); n != 1 {
		t.Errorf("%d notices", n)
	}
	get := f.got("tasks/get")[0]
	if get.Header.Get("Mcp-Name") != "t1" || get.Header.Get("Mcp-Method") != "tasks/get" ||
		!has(string(get.Params["_meta"]), "io.modelcontextprotocol/tasks") {
		t.Errorf("tasks/get has %s and the headers %v", get.Params, get.Header)
	}
}

// TestTaskGoesOn: in another process the task is only asked about, whatever its effect, and
// a connection that breaks meanwhile does not matter.
func TestTaskGoesOn(t *testing.T) {
	t.Parallel()
	for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce} {
		breaks := 2
		f := tasking(t, func(w http.ResponseWriter, m message) bool {
			if m.Method != "tasks/get" {
				return false
			}
			if breaks--; breaks == 1 {
				m.cut(w)
			} else if breaks == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return breaks >= 0
		}, finished)
		k := newTalk(t, f, mcp.Options{Effect: effect})
		k.call.Kept = json.RawMessage(`{"task":{"id":"t1"}}`)
		if r, err := k.next(); r.Text != "done" || err != nil {
			t.Errorf("%s: got %+v, %v", effect, r, err)
		}
		if n := len(f.got("tools/call")); n != 0 {
			t.Errorf("%s: the tool was called %d times", effect, n)
		}
	}
}

// TestTaskAsks: a task's question is asked, and its answer goes to the task once.
func TestTaskAsks(t *testing.T) {
	t.Parallel()
	f := tasking(t, nil, waiting, waiting, working, finished)
	k := newTalk(t, f, mcp.Options{})
	_, _ = k.next()
	k.question("Which size?", `"key":"a"`)
	r, err := k.answer(`{"size":3}`)
	if r.Text != "done" || err != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	updates := f.got("tasks/update")
	if len(updates) != 1 || string(updates[0].Params["inputResponses"]) !=
		`{"a":{"action":"accept","content":{"size":3}}}` || string(updates[0].Params["taskId"]) != `"t1"` {
		t.Errorf("the updates are %v", updates)
	}
	if n := len(f.got("tools/call")); n != 1 {
		t.Errorf("the tool was called %d times", n)
	}
}

// TestTaskEnds: how a task can end.
func TestTaskEnds(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`{` + complete + `"status":"failed","error":{"code":-32603,"message":"no paper"}}`: failed,
		`{` + complete + `"status":"failed"}`:                                              failed,
		`{` + complete + `"status":"cancelled"}`:                                           failed,
		`{` + complete + `"status":"completed","result":{"content":[],"isError":true}}`:    failed,
		`{` + complete + `"status":"completed"}`:                                           failed,
		`{` + complete + `"status":"completed",` +
			`"result":{"resultType":"complete","content":[{"type":"text","text":"x"}]}}`: fine,
		`{` + complete + `"status":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}`: failed,
		`7`: unknown,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			f := tasking(t, nil, state)
			s := open(t, mcp.Options{URL: f.URL})
			r, err := do(t, s, "srv_work", `{}`)
			if got := fate(r, err); got != want {
				t.Errorf("the call is %s, want %s: %+v, %v", got, want, r, err)
			}
		})
	}
	f := tasking(t, func(w http.ResponseWriter, m message) bool {
		if m.Method == "tasks/get" {
			m.error(w, 200, -32602, "there is no such task")
		}
		return m.Method == "tasks/get"
	})
	s := open(t, mcp.Options{URL: f.URL})
	if r, err := do(t, s, "srv_work", `{}`); fate(r, err) != unknown || !has(err.Error(), "says nothing more") {
		t.Errorf("a forgotten task: %+v, %v", r, err)
	}
	f = tasking(t, func(w http.ResponseWriter, m message) bool {
		if m.Method == "tools/call" {
			m.result(w, `{"resultType":"task"}`)
		}
		return m.Method == "tools/call"
	})
	s = open(t, mcp.Options{URL: f.URL})
	if got := fate(do(t, s, "srv_work", `{}`)); got != unknown {
		t.Errorf("a task without an id: %s", got)
	}
}

// TestTaskLogin: who has to log in again while a task goes on is asked to, and the task goes on
// with the new credential; a source that has none for a moment is asked again.
func TestTaskLogin(t *testing.T) {
	t.Parallel()
	f := tasking(t, nil, finished)
	answers := []error{errors.New("the vault is sealed"), &credential.LoginRequired{URL: "https://example.com/login"}}
	k := newTalk(t, f, mcp.Options{MaxDuration: 5 * time.Second,
		CallHeaders: func(context.Context) (http.Header, error) {
			if len(answers) > 0 {
				err := answers[0]
				answers = answers[1:]
				return nil, err
			}
			return http.Header{"X-User": {"HAL"}}, nil
		}})
	k.call.Kept = json.RawMessage(`{"task":{"id":"t1"}}`)
	if _, err := k.next(); k.asked == nil || k.asked.Reason != credential.ReasonLogin {
		t.Fatalf("the error is %v", err)
	}
	if r, err := k.next(); r.Text != "done" || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := f.got("tasks/get"); len(got) != 1 || got[0].Header.Get("X-User") != "HAL" ||
		len(f.got("tasks/cancel")) > 0 {
		t.Errorf("the task was asked about: %+v", got)
	}
}

// TestTaskToken: the headers of a call are asked for with each of its requests, since it may
// outlive a token.
func TestTaskToken(t *testing.T) {
	t.Parallel()
	f := tasking(t, nil, working, finished)
	n := 0
	k := newTalk(t, f, mcp.Options{CallHeaders: func(context.Context) (http.Header, error) {
		n++
		return http.Header{"X-Try": {fmt.Sprint(n)}}, nil
	}})
	if r, err := k.next(); r.Text != "done" || err != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	for i, m := range append(f.got("tools/call"), f.got("tasks/get")...) {
		if got := m.Header.Get("X-Try"); got != fmt.Sprint(i+1) {
			t.Errorf("request %d has the headers of %s", i+1, got)
		}
	}
}

// TestTaskCancel: a task is cancelled if the user cancels the run or its time is up, and not
// if the process ends.
func TestTaskCancel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error
		want  bool
	}{"cancelled": {holdfast.ErrCancelled, true}, "shut down": {errors.New("shut down"), false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polled := make(chan struct{}, 100)
			f := tasking(t, func(_ http.ResponseWriter, m message) bool {
				if m.Method == "tasks/get" {
					polled <- struct{}{}
				}
				return false
			}, working)
			s := open(t, mcp.Options{URL: f.URL})
			ctx, _ := agenttest.Context(t)
			ctx, cancel := context.WithCancelCause(ctx)
			go func() {
				<-polled
				cancel(c.cause)
			}()
			if _, err := call(t, ctx, tool(t, s, "srv_work"), holdfast.ToolCall{}); !errors.Is(err, c.cause) {
				t.Errorf("the error is %v", err)
			}
			if c.want {
				wait.Until(t, "the task is cancelled", func() bool { return len(f.got("tasks/cancel")) == 1 })
			}
			s.Close()
			if got := len(f.got("tasks/cancel")) > 0; got != c.want {
				t.Errorf("cancelled: %v", got)
			}
		})
	}
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		f := tasking(t, nil, working)
		s := open(t, mcp.Options{URL: f.URL, MaxDuration: time.Second, Timeout: time.Second})
		if got := fate(do(t, s, "srv_work", `{}`)); got != unknown {
			t.Errorf("the call is %s", got)
		}
		wait.Until(t, "the task is cancelled", func() bool { return len(f.got("tasks/cancel")) == 1 })
	})
}
