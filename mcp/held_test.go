package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// eliciting is a server of the revision 2025-11-25 over HTTP whose tool asks in the middle
// of a call. It counts the calls that run, and those that ran beside another one.
func eliciting(t *testing.T, running, beside *atomic.Int32) mcp.Options {
	s := newServer(func(s *sdk.Server) {
		s.AddTool(&sdk.Tool{Name: "work", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if running.Add(1) > 1 {
					beside.Add(1)
				}
				defer running.Add(-1)
				ctx, cancel := context.WithCancel(ctx) // the client may be gone for good
				defer context.AfterFunc(t.Context(), cancel)()
				res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{
					Message:         "Which size?",
					RequestedSchema: json.RawMessage(`{"type":"object","properties":{"size":{"type":"integer"}}}`),
				})
				if err != nil {
					return text("it cannot be asked"), nil
				}
				return text("%s %v", res.Action, res.Content["size"]), nil
			})
	})
	return mcp.Options{
		URL:         serveWeb(t, s, false).URL,
		Elicitation: true,
		Effects:     map[string]holdfast.Effect{"echo": holdfast.EffectOnce},
	}
}

// conversation is a call in one process, which a person answers.
func conversation(t *testing.T, s *mcp.Server) *talk {
	return &talk{t: t, server: s, tool: "srv_work", call: holdfast.ToolCall{ID: "c1"}}
}

// TestElicitation: a question of a server of the older revisions is asked while its call is
// held open, and the answer goes back to it.
func TestElicitation(t *testing.T) {
	t.Parallel()
	var running, beside atomic.Int32
	o := eliciting(t, &running, &beside)
	s := open(t, o)
	for payload, want := range map[string]string{`{"size":3}`: "accept 3", ``: "decline <nil>"} {
		k := conversation(t, s)
		_, _ = k.next()
		k.question("Which size?", `"mode":"form"`)
		if r, err := k.answer(payload); r.Text != want || err != nil {
			t.Errorf("got %+v, %v, want %s", r, err, want)
		}
	}
	o.Elicitation = false
	if r, err := do(t, open(t, o), "srv_work", `{}`); r.Text != "it cannot be asked" || err != nil {
		t.Errorf("where it is not offered: %+v, %v", r, err)
	}
}

// TestElicitationTurns: such a server gets one call at a time.
func TestElicitationTurns(t *testing.T) {
	t.Parallel()
	var running, beside atomic.Int32
	s := open(t, eliciting(t, &running, &beside))
	results := make(chan string)
	for i := range 3 {
		go func() {
			k := conversation(t, s)
			ctx, recorded := agenttest.Context(t)
			_, err := call(t, ctx, tool(t, s, "srv_work"), k.call)
			var asked *holdfast.Interrupt
			if !errors.As(err, &asked) {
				results <- fmt.Sprint(err)
				return
			}
			k.call.Kept = recorded.Kept("c1")
			k.call.Answer = &holdfast.Answer{
				Payload: json.RawMessage(fmt.Sprintf(`{"size":%d}`, i)),
				Asked:   asked.Metadata,
			}
			r, err := call(t, ctx, tool(t, s, "srv_work"), k.call)
			results <- fmt.Sprint(r.Text, err)
		}()
	}
	for range 3 {
		if got := <-results; !strings.HasPrefix(got, "accept ") {
			t.Errorf("got %s", got)
		}
	}
	if n := beside.Load(); n > 0 {
		t.Errorf("%d calls ran beside another one", n)
	}
}

// TestElicitationLate: a server does not wait for ever; an answer that comes too late does
// not reach it, and the call has its result.
func TestElicitationLate(t *testing.T) {
	t.Parallel()
	var running, beside atomic.Int32
	o := eliciting(t, &running, &beside)
	o.ElicitationWait = 50 * time.Millisecond
	s := open(t, o)
	k := conversation(t, s)
	_, _ = k.next()
	k.question("Which size?", `"mode":"form"`)
	wait.Until(t, "the call has ended", func() bool { return running.Load() == 0 })
	if r, err := k.answer(`{"size":3}`); r.Text != "cancel <nil>" || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestElicitationElsewhere: in another process the call is not there to go on. A once call
// is in doubt, any other asks again.
func TestElicitationElsewhere(t *testing.T) {
	t.Parallel()
	for effect, want := range map[holdfast.Effect]string{holdfast.EffectOnce: unknown,
		holdfast.EffectIdempotent: "asked"} {
		var running, beside atomic.Int32
		o := eliciting(t, &running, &beside)
		o.Effect, o.Effects = effect, nil
		k := conversation(t, open(t, o))
		_, _ = k.next()
		k.question("Which size?", `"mode":"form"`)
		k.server = open(t, o)
		got := fate(k.answer(`{"size":3}`))
		if k.asked != nil {
			got = "asked"
		}
		if got != want {
			t.Errorf("%s: the call is %s, want %s", effect, got, want)
		}
	}
}
