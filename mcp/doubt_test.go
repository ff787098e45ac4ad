package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// The outcome of a call when something dies or answers wrongly. After each of these the same
// connection, or the next one, serves the next call.

const (
	unknown = "unknown" // perhaps done: the effect decides
	not     = "not"     // certainly not started
	failed  = "failed"  // done, and the answer is an error
	fine    = "fine"
)

// fate returns which of these a call came to.
func fate(r holdfast.ToolResult, err error) string {
	switch {
	case errors.Is(err, holdfast.ErrOutcomeUnknown),
		err != nil && has(err.Error(), "mcp_no_answer"): // of what may be called again
		return unknown
	case err != nil && has(err.Error(), "mcp_answer_unreadable"):
		return failed
	case err != nil:
		return not
	case r.Failed:
		return failed
	}
	return fine
}

// TestFates: what a server, or what stands before it, answers to a call.
func TestFates(t *testing.T) {
	t.Parallel()
	status := func(code int) func(w http.ResponseWriter, m message) {
		return func(w http.ResponseWriter, m message) { http.Error(w, "no", code) }
	}
	sse := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
		_ = http.NewResponseController(w).Flush()
	}
	for name, c := range map[string]struct {
		call func(w http.ResponseWriter, m message)
		want string
	}{
		"cut before the answer": {func(w http.ResponseWriter, m message) { m.cut(w) }, unknown},
		"cut after the first byte": {func(w http.ResponseWriter, m message) {
			sse(w, ": hello\n\n")
			m.cut(w)
		}, unknown},
		"ended stream": {func(w http.ResponseWriter, m message) { sse(w, ": hello\n\n") }, unknown},
		"torn event": {func(w http.ResponseWriter, m message) { sse(w, `data: {"jsonrpc":"2.0","id":1`) },
			unknown},
		"event that is no JSON": {func(w http.ResponseWriter, m message) { sse(w, "data: hello\n\n") }, unknown},
		"too large an event": {func(w http.ResponseWriter, m message) {
			sse(w, "data: "+strings.Repeat("x", 200_000)+"\n\n")
		}, failed},
		"too large a body": {func(w http.ResponseWriter, m message) {
			m.result(w, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 200_000)+`"}]}`)
		}, failed},
		"too large a result": {func(w http.ResponseWriter, m message) {
			m.result(w, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 60_000)+`"}]}`)
		}, failed},
		"a page": {func(w http.ResponseWriter, m message) { w.Write([]byte("<html>")) }, unknown},
		"another id": {func(w http.ResponseWriter, m message) { m.ID = []byte("4711"); m.result(w, `{"content":[]}`) },
			unknown},
		"accepted": {status(202), unknown},
		"moved": {func(w http.ResponseWriter, m message) {
			w.Header().Set("Location", "http://example.com/")
			w.WriteHeader(307)
		}, not},
		"bad request":     {status(400), not},
		"unauthorized":    {status(401), not},
		"forbidden":       {status(403), not},
		"not found":       {status(404), not},
		"timeout":         {status(408), unknown},
		"too large":       {status(413), not},
		"teapot":          {status(418), not},
		"too many":        {status(429), not},
		"internal":        {status(500), unknown},
		"bad gateway":     {status(502), unknown},
		"unavailable":     {status(503), unknown},
		"gateway timeout": {status(504), unknown},
		"unknown tool": {func(w http.ResponseWriter, m message) { m.error(w, 200, -32602, "unknown tool") },
			not},
		"unknown method": {func(w http.ResponseWriter, m message) { m.error(w, 404, -32601, "no such method") },
			not},
		"headers do not match": {func(w http.ResponseWriter, m message) { m.error(w, 400, -32020, "headers") }, not},
		"internal error":       {func(w http.ResponseWriter, m message) { m.error(w, 200, -32603, "oops") }, unknown},
		"a timeout of the server": {func(w http.ResponseWriter, m message) { m.error(w, 200, -32001, "timeout") },
			unknown},
		"an error result": {func(w http.ResponseWriter, m message) { m.result(w, `{"content":[],"isError":true}`) },
			failed},
		"no result": {func(w http.ResponseWriter, m message) { m.result(w, `7`) }, failed},
		"an unknown type": {func(w http.ResponseWriter, m message) {
			m.result(w, `{"resultType":"riddle","content":[]}`)
		},
			failed},
		"unknown content": {func(w http.ResponseWriter, m message) { m.result(w, `{"content":[{"type":"smell"}]}`) },
			fine},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
				if calls.Add(1) == 2 {
					c.call(w, m)
					return
				}
				m.result(w, `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`)
			})
			s := open(t, mcp.Options{URL: f.URL, MaxMessageBytes: 100_000, MaxResultBytes: 50_000})
			if got := fate(do(t, s, "srv_work", `{}`)); got != fine {
				t.Fatalf("the call before is %s", got)
			}
			r, err := do(t, s, "srv_work", `{}`)
			if got := fate(r, err); got != c.want {
				t.Errorf("the call is %s, want %s: %+v, %v", got, c.want, r, err)
			}
			if err != nil && strings.Contains(err.Error(), f.URL) {
				t.Errorf("the error names the URL: %v", err)
			}
			if got := fate(do(t, s, "srv_work", `{}`)); got != fine {
				t.Errorf("the call after is %s", got)
			}
			if n := len(f.got("server/discover")); n != 1 {
				t.Errorf("connected %d times", n)
			}
		})
	}
}

// TestNoAnswerByEffect: a call that may be made twice and is not answered has failed, and says
// whether that matters.
func TestNoAnswerByEffect(t *testing.T) {
	t.Parallel()
	for effect, want := range map[holdfast.Effect]string{
		holdfast.EffectPure: "mcp_no_answer: srv_work was called, and the MCP server srv has not said what " +
			"came of it: the connection broke.",
		holdfast.EffectIdempotent: "mcp_no_answer: srv_work was called, and the MCP server srv has not said what " +
			"came of it: the connection broke. It may have taken effect.",
		holdfast.EffectOnce: "mcp_outcome_unknown: srv_work was called",
	} {
		f := newFake(t, oneTool, func(w http.ResponseWriter, m message) { m.cut(w) })
		s := open(t, mcp.Options{URL: f.URL, Effect: effect})
		_, err := do(t, s, "srv_work", `{}`)
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			errors.Is(err, holdfast.ErrOutcomeUnknown) != (effect == holdfast.EffectOnce) {
			t.Errorf("%s: %v", effect, err)
		}
	}
}

// TestParallel: a call that fails in the connection takes no other with it.
func TestParallel(t *testing.T) {
	t.Parallel()
	release, waiting := make(chan struct{}), make(chan struct{})
	f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		if strings.Contains(string(m.Params["arguments"]), "bad") {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: torn\n\n")
			return
		}
		close(waiting)
		<-release
		m.result(w, `{"content":[{"type":"text","text":"done"}]}`)
	})
	s := open(t, mcp.Options{URL: f.URL})
	got := make(chan string)
	go func() { got <- fate(do(t, s, "srv_work", `{}`)) }()
	<-waiting
	if got := fate(do(t, s, "srv_work", `{"bad":true}`)); got != unknown {
		t.Errorf("the bad call is %s", got)
	}
	close(release)
	if got := <-got; got != fine {
		t.Errorf("the other call is %s", got)
	}
}

// TestNotRunning: a call to a server that does not run was certainly not sent.
func TestNotRunning(t *testing.T) {
	t.Parallel()
	f := newFake(t, oneTool, nil)
	s := open(t, mcp.Options{URL: f.URL})
	f.CloseClientConnections()
	f.Close()
	_, _ = do(t, s, "srv_work", `{}`) // it may still go into the old connection
	r, err := do(t, s, "srv_work", `{}`)
	if got := fate(r, err); got != not || !has(err.Error(), "nothing was sent") {
		t.Errorf("the call is %s: %v", got, err)
	}
	if got := names(s); len(got) != 1 {
		t.Errorf("the tools are %v", got)
	}
}

// TestNotRunningAgain: of a call that may have been started before, it is not said that nothing
// was sent.
func TestNotRunningAgain(t *testing.T) {
	t.Parallel()
	for effect, effected := range map[holdfast.Effect]bool{
		holdfast.EffectPure: false, holdfast.EffectIdempotent: true, holdfast.EffectOnce: true,
	} {
		f := newFake(t, oneTool, nil)
		s := open(t, mcp.Options{URL: f.URL, Effect: effect})
		f.CloseClientConnections()
		f.Close()
		_, _ = do(t, s, "srv_work", `{}`) // it may still go into the old connection
		ctx, _ := agenttest.Context(t)
		_, err := call(t, ctx, tool(t, s, "srv_work"),
			holdfast.ToolCall{Key: "key1", Arguments: json.RawMessage(`{}`), Again: true})
		if err == nil || !has(err.Error(), "mcp_no_answer", "this try sent nothing") ||
			has(err.Error(), "An earlier one may have taken effect") != effected {
			t.Errorf("%s: %v", effect, err)
		}
	}
}

// TestProcessDies: a call during which its process dies is unknown, and the next one is
// served by a new process.
func TestProcessDies(t *testing.T) {
	t.Parallel()
	o := process(t, "plain")
	s := open(t, o)
	if got := fate(do(t, s, "srv_die", `{}`)); got != unknown {
		t.Errorf("the call is %s", got)
	}
	wait.Until(t, "there is another process", func() bool { return len(noted(o, "started")) == 2 })
	wait.Until(t, "a call is served", func() bool { return fate(do(t, s, "srv_echo", `{}`)) == fine })
	if called := noted(o, "called"); len(called) != 1 {
		t.Errorf("it was called %d times", len(called))
	}
}

// TestTimeout: a call that is not answered in time is unknown; the server is told, and the
// connection serves the next call.
func TestTimeout(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o mcp.Options) {
		o.Timeout = 500 * time.Millisecond
		s := open(t, o)
		r, err := do(t, s, "srv_wait", `{}`)
		if got := fate(r, err); got != unknown || !has(err.Error(), "none came within 500ms") {
			t.Errorf("the call is %s: %v", got, err)
		}
		wait.Until(t, "a call is served", func() bool { return fate(do(t, s, "srv_echo", `{}`)) == fine })
		wait.Until(t, "the server was told", func() bool {
			return o.URL != "" && waits.Load() == 0 || strings.Join(noted(o, "called"), " ") == "wait cancelled"
		})
	})
}

// TestCancel: the cancellation of a run reaches the server.
func TestCancel(t *testing.T) {
	t.Parallel()
	gone, called := make(chan struct{}), make(chan struct{})
	f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		close(called)
		<-m.body.Context().Done()
		close(gone)
	})
	s := open(t, mcp.Options{URL: f.URL})
	ctx, _ := agenttest.Context(t)
	ctx, cancel := context.WithCancelCause(ctx)
	why := errors.New("the user has changed their mind")
	go func() {
		<-called
		cancel(why)
	}()
	if _, err := call(t, ctx, tool(t, s, "srv_work"), holdfast.ToolCall{}); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
	<-gone
}

// TestSessionForgotten: a server that has forgotten the session is connected to again, in
// the way of the protocol and in that of the npm servers.
func TestSessionForgotten(t *testing.T) {
	t.Parallel()
	for _, status := range []int{404, 400} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := serveWeb(t, newServer(), false)
			s := open(t, mcp.Options{URL: w.URL})
			var forgotten atomic.Value // the session that the server knows no more
			forgotten.Store("")
			w.intercept(func(w http.ResponseWriter, r *http.Request, _ string) bool {
				id := r.Header.Get("Mcp-Session-Id")
				if id == "" || !forgotten.CompareAndSwap("", id) && forgotten.Load() != id {
					return false
				}
				w.WriteHeader(status)
				return true
			})
			if got := fate(do(t, s, "srv_echo", `{}`)); got != not {
				t.Errorf("the call is %s", got)
			}
			wait.Until(t, "a call is served", func() bool { return fate(do(t, s, "srv_echo", `{}`)) == fine })
		})
	}
}
