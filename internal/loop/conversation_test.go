package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// moody does what the last user message says.
var moody = holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		text := ""
		for _, m := range req.Messages {
			if m.Role == holdfast.RoleUser {
				text = m.Text
			}
		}
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == holdfast.RoleTool || text == "talk":
			yield(holdfast.Delta{Reasoning: "hm"}, nil)
			yield(holdfast.Delta{Text: "fine", Finish: holdfast.FinishStop}, nil)
		case text == "fail":
			if yield(holdfast.Delta{Text: "oh"}, nil) {
				yield(holdfast.Delta{}, &holdfast.ModelError{Public: "no"})
			}
		default:
			for i, name := range []string{"ping", text} {
				if !yield(
					holdfast.Delta{
						Call: &holdfast.CallDelta{Index: i, ID: fmt.Sprint("call_", i), Name: name, Arguments: "{}"},
					},
					nil,
				) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	}
})

// client is somebody who posts whatever comes to mind.
type client struct {
	t    *testing.T
	e    *looptest.Engine
	code []byte
	runs int
}

func (c *client) next(n int) int {
	if len(c.code) == 0 {
		return 0
	}
	b := c.code[0]
	c.code = c.code[1:]
	return int(b) % n
}

// input draws the messages from what the server holds, in part or changed, and
// adds some that are new.
func (c *client) input() *agui.RunAgentInput {
	c.runs++
	in := looptest.RunInput("t", fmt.Sprintf("r%d", c.runs-c.next(4)/3), nil...)
	info, err := c.e.Keeper.Thread(c.t.Context(), looptest.Alice, "t")
	if err == nil && c.next(3) > 0 {
		raw, err := c.e.Messages(c.t.Context(), looptest.Alice, "t")
		if err != nil {
			c.t.Fatal(err)
		}
		for _, r := range raw[:len(raw)-c.next(len(raw)+1)/2] {
			m, err := agui.DecodeMessage(r)
			if err != nil {
				c.t.Fatal(err)
			}
			switch c.next(12) {
			case 0:
				continue
			case 1:
				m.Content = json.RawMessage(`"changed"`)
			}
			in.Messages = append(in.Messages, m)
		}
	}
	if err == nil && c.next(2) > 0 {
		for _, id := range info.PendingToolCalls {
			in.Messages = append(in.Messages, agui.FromDomain(holdfast.Message{
				ID:     fmt.Sprintf("res-%s-%d", id, c.runs),
				Role:   holdfast.RoleTool,
				CallID: id,
				Text:   "ok",
			}))
		}
		for _, open := range info.Interrupts {
			in.Resume = append(in.Resume, agui.ResumeEntry{
				InterruptID: open.ID,
				Status:      []string{agui.ResumeResolved, agui.ResumeCancelled}[c.next(2)],
			})
		}
	}
	for range c.next(3) {
		text := []string{"talk", "tool", "ask", "page", "fail", "nobody"}[c.next(6)]
		in.Messages = append(in.Messages, looptest.UserSays(fmt.Sprintf("u%d-%d", c.runs, len(in.Messages)), text))
	}
	in.Tools = []agui.Tool{{Name: "page"}}
	in.ForwardedProps = json.RawMessage(fmt.Sprintf(`{"holdfast":{"onInterrupted":%q,"onUnfinished":%q,"branch":%t}}`,
		[]string{"reject", "decline"}[c.next(2)], []string{"reject", "abandon"}[c.next(2)], c.next(4) == 0))
	return in
}

// FuzzConversation: whatever clients post, every stream is legal, the history stays well
// formed, and the thread can always continue.
func FuzzConversation(f *testing.F) {
	f.Add([]byte("a long enough seed to talk, ask and fail a few times over and over again"))
	f.Add([]byte{0, 1, 2, 0, 0, 0, 1, 1, 3, 2, 1, 4, 1, 1, 0, 2, 5, 2, 1, 1, 1, 2, 2, 3, 3, 1, 1, 0, 0, 1})
	f.Fuzz(func(t *testing.T, code []byte) {
		if len(code) > 400 {
			return
		}
		ask := holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
			if holdfast.CallFrom(ctx).Answer != nil {
				return "answered", nil
			}
			return "", &holdfast.Interrupt{Message: "well?"}
		})
		ping := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
		}, holdfast.Agent{Name: "a", Model: moody, Tools: []holdfast.Tool{ask, ping}})
		c := &client{t: t, e: e, code: code}
		for len(c.code) > 0 {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", c.input())
			if err != nil {
				if pub := holdfast.AsError(err); pub.Code == codes.Internal || pub.Code == codes.StoreUnavailable ||
					pub.Hint == "" {
					t.Fatalf("refused with %v", err)
				}
				continue
			}
			for _, ev := range looptest.Collect(t, reply, nil) {
				if failed, ok := ev.(agui.RunError); ok && failed.Code == codes.Internal {
					t.Fatalf("%+v", failed)
				}
			}
			checkWellFormed(t, e)
		}
		goOn(t, e)
	})
}

// checkWellFormed: every call has one result, before the next answer; only the
// last answer may have calls without one.
func checkWellFormed(t *testing.T, e *looptest.Engine) {
	t.Helper()
	raw, err := e.Messages(t.Context(), looptest.Alice, "t")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, r := range raw {
		m, err := agui.DecodeMessage(r)
		if err != nil {
			t.Fatal(err)
		}
		switch m.Role {
		case "tool":
			i := slices.Index(open, m.ToolCallID)
			if i < 0 {
				t.Fatalf("a result without an open call: %s", raw)
			}
			open = slices.Delete(open, i, i+1)
		case "user", "assistant":
			if len(open) > 0 {
				t.Fatalf("%s follows calls without results: %s", m.ID, raw)
			}
			for _, call := range m.ToolCalls {
				open = append(open, call.ID)
			}
		}
	}
}

// goOn: by the ways out that errors name, a thread is never stuck.
func goOn(t *testing.T, e *looptest.Engine) {
	t.Helper()
	in := looptest.RunInput("t", "last", looptest.UserSays("last", "talk"))
	in.ForwardedProps = json.RawMessage(`{"holdfast":{"onInterrupted":"decline","onUnfinished":"abandon"}}`)
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
}
