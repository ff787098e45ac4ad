package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// TestDeclinedIsTold: a tool that wants to know is called with the answer of a person who
// declines; any other call's result says so, and the tool is not called.
func TestDeclinedIsTold(t *testing.T) {
	for told, result := range map[bool]string{true: "declined true", false: thread.TextDeclined} {
		synctest.Test(t, func(t *testing.T) {
			ask := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
				if a := holdfast.CallFrom(ctx).Answer; a != nil {
					if a.Declined {
						return "declined true", nil
					}
					return "answered", nil
				}
				return "", &holdfast.Interrupt{Message: "Go on?", TellDeclined: told}
			}, holdfast.WithEffect(holdfast.EffectOnce))
			e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
				Name:  "a",
				Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
				Tools: []holdfast.Tool{ask},
			})
			in := looptest.Answers("t", "r2", ``, looptest.OpenOf(t, looptest.Started(t, e, "t"))...)
			in.Resume[0].Status, in.Resume[0].Payload = agui.ResumeCancelled, nil
			looptest.Succeeded(t, looptest.Posted(t, e, in))
			looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+result, "assistant:done")
		})
	}
}

// TestCauseOfCancel: a tool can tell the user's cancelling of a run from the end of the
// process, which leaves the run to be continued.
func TestCauseOfCancel(t *testing.T) {
	for _, cancels := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			cause := make(chan error, 1)
			waits := looptest.Tool("work", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return "", ctx.Err()
			})
			e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
				Name:  "a",
				Model: looptest.Say(looptest.Calls("work", `{}`)),
				Tools: []holdfast.Tool{waits},
			})
			looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
			synctest.Wait()
			if cancels {
				looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
			} else {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				e.Shutdown(ctx)
			}
			if got := errors.Is(<-cause, holdfast.ErrCancelled); got != cancels {
				t.Errorf("cancelled: %v, want %v", got, cancels)
			}
		})
	}
}
