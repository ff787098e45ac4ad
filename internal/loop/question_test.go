package loop_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// asksAt is a middleware that asks before an iteration.
func asksAt(number int, j *looptest.Notebook) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test.ask",
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			if it.Number != number {
				return nil
			}
			if it.Answer == nil {
				return &holdfast.Interrupt{Reason: "test:go_on", Message: "Go on?"}
			}
			j.Note(it.Answer.Reason + " " + string(it.Answer.Payload))
			if it.Answer.Declined || string(it.Answer.Payload) != "true" {
				return holdfast.Errorf("test_no", "The person said no.")
			}
			return nil
		},
	}
}

// TestHookAsks: a hook asks a person before an iteration; the thread waits, and the
// answer reaches the hook once.
func TestHookAsks(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(open agui.Interrupt) *agui.RunAgentInput
		code   string
		told   string
	}{
		"yes": {func(i agui.Interrupt) *agui.RunAgentInput { return looptest.Answers("t", "r2", "true", i) }, "",
			"test:go_on true"},
		"no": {func(i agui.Interrupt) *agui.RunAgentInput { return looptest.Answers("t", "r2", "false", i) },
			"test_no", "test:go_on false"},
		"declined": {func(i agui.Interrupt) *agui.RunAgentInput {
			in := looptest.RunInput("t", "r2")
			in.Resume = []agui.ResumeEntry{{InterruptID: i.ID, Status: agui.ResumeCancelled}}
			return in
		}, "test_no", "test:go_on "},
	} {
		t.Run(name, func(t *testing.T) {
			j, store := &looptest.Notebook{}, memstore.New()
			e := looptest.Start(t, store, nil, looptest.Pinger(2, asksAt(1, j)))
			open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
			if len(open) != 1 || open[0].ToolCallID != "" || open[0].Reason != "test:go_on" {
				t.Fatalf("asked %+v", open)
			}
			sound(t, store, "t")
			hydrated := looptest.Posted(t, e, looptest.RunInput("t", "r9"))
			if again := looptest.OpenOf(t, hydrated); again[0].ID != open[0].ID {
				t.Errorf("shown again it is another question: %+v", again)
			}
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r9",
					looptest.UserSays("u2", "hello?"))); looptest.Code(err) != codes.Interrupted {
				t.Errorf("a new message: %v", err)
			}
			events := looptest.Posted(t, e, c.answer(open[0]))
			if c.code == "" {
				looptest.Succeeded(t, events)
			} else {
				looptest.Failed(t, events, c.code)
			}
			if got := j.Take(); len(got) != 1 || got[0] != c.told {
				t.Errorf("the hook was told %q", got)
			}
			sound(t, store, "t")
		})
	}
}

// TestHookAsksAgain: back at the checkpoint where the person had answered, the hook's
// question is open again under a new id; declining all by policy starts afresh.
func TestHookAsksAgain(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, store, nil, looptest.Pinger(2, asksAt(1, j)))
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", "true", open[0])))
	j.Take()
	var at string
	for _, cp := range looptest.Checkpoints(t, e, "t") {
		if cp.Status == threads.StatusInterrupted {
			at = cp.ID
		}
	}
	got := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: at}))(t)
	if len(got.Thread.Interrupts) != 1 || got.Thread.Interrupts[0].ID == open[0].ID {
		t.Fatalf("back there, the open questions are %+v", got.Thread.Interrupts)
	}
	sound(t, store, "t")
	in := looptest.RunInput("t", "r3", looptest.UserSays("u2", "something else"))
	in.ForwardedProps = []byte(`{"holdfast":{"onInterrupted":"decline"}}`)
	// The new run has done less than two iterations, so it is asked on its own.
	again := looptest.OpenOf(t, looptest.Posted(t, e, in))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r4", "true", again...)))
	sound(t, store, "t")
}

// TestAnswerSurvives: the owner dies after a person has answered; the next one finds
// the answer.
func TestAnswerSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		j := &looptest.Notebook{}
		agent := func(hang bool) holdfast.Agent {
			a := looptest.Pinger(2, asksAt(1, j))
			inner := a.Model
			a.Model = holdfast.ModelFunc(func(ctx context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				if hang && req.Iteration == 1 {
					<-ctx.Done()
				}
				return inner.Stream(ctx, req)
			})
			return a
		}
		one := looptest.Start(t, first, nil, agent(true))
		open := looptest.OpenOf(t, looptest.Started(t, one, "t"))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.Answers("t", "r2", "true", open[0])); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, nil, agent(false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:pong", "assistant:", "tool:pong",
			"assistant:done")
		if got := j.Take(); len(got) != 2 || got[0] != got[1] {
			t.Errorf("the hooks were told %q", got)
		}
	})
}

// TestModelHookAsks: a Model hook may ask in the model's place, before its first delta.
func TestModelHookAsks(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			m := holdfast.Middleware{Name: "test.ask", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
				return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					if holdfast.IterationFrom(ctx).Answer != nil {
						return next(ctx, req)
					}
					return func(yield func(holdfast.Delta, error) bool) {
						if late && !yield(holdfast.Delta{Text: "Well,"}, nil) {
							return
						}
						yield(holdfast.Delta{}, &holdfast.Interrupt{Message: "May I?"})
					}
				}
			}}
			e := looptest.Start(t, memstore.New(), nil, looptest.Pinger(0, m))
			events := looptest.Started(t, e, "t")
			if late {
				looptest.Failed(t, events, codes.MiddlewareFailed)
				return
			}
			looptest.Succeeded(t, looptest.Posted(t, e,
				looptest.Answers("t", "r2", "true", looptest.OpenOf(t, events)...)))
			looptest.WantTexts(t, e, "t", "user:go", "assistant:done")
		})
	}
}
