package loop_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// thinker is an agent whose first calls of the model think and then do what interrupted
// does, which is to fail or to wait. The other ones think and answer.
func thinker(calls *atomic.Int32, interrupted ...func(context.Context) error) holdfast.Agent {
	model := holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			n := int(calls.Add(1)) - 1
			if !yield(holdfast.Delta{Reasoning: "hm"}, nil) ||
				n < len(interrupted) && !yield(holdfast.Delta{}, interrupted[n](ctx)) {
				return
			}
			_ = yield(holdfast.Delta{Reasoning: " yes"}, nil) &&
				yield(holdfast.Delta{Text: "so", Finish: holdfast.FinishStop}, nil)
		}
	})
	return holdfast.Agent{Name: "a", Model: model}
}

func fails(context.Context) error {
	return &holdfast.ModelError{Retryable: true, Public: "cut", Err: errors.New("cut")}
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// onScreen is what a client shows, having begun with these messages.
func onScreen(client []agui.Message, events []agui.Event) []string {
	return looptest.Reduce(append([]agui.Event{agui.MessagesSnapshot{Messages: client}}, events...))
}

// TestReasoningIsTakenBack: a stock client keeps reasoning that was taken back as long as
// snapshots have none. After the next answer with reasoning it shows what the server has,
// although the first owner died while it reasoned, twice, or the model failed.
func TestReasoningIsTakenBack(t *testing.T) {
	asked := looptest.UserSays("u1", "go")
	want := []string{"user:go", "reasoning:hm yes", "assistant:so"}
	t.Run("retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := looptest.Start(t, memstore.New(), nil, thinker(new(atomic.Int32), fails, fails))
			events := looptest.Posted(t, e, looptest.RunInput("t", "r1", asked))
			looptest.Succeeded(t, events)
			if got := onScreen([]agui.Message{asked}, events); !slices.Equal(got, want) {
				t.Errorf("the client shows %q, want %q\n%s", got, want, looptest.Show(events))
			}
			began := false
			for _, ev := range looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again"))) {
				began = began || agui.EventType(ev) == agui.TypeReasoningStart
				if began && agui.EventType(ev) == agui.TypeMessagesSnapshot {
					t.Error("the next run has another snapshot, although it took nothing back")
				}
			}
		})
	})
	t.Run("takeover", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shared, calls := memstore.New(), new(atomic.Int32)
			agent := thinker(calls, hangs, hangs)
			for n := range 2 {
				dying := &looptest.Mortal{Store: shared}
				e := looptest.Start(t, dying, nil, agent)
				if n == 0 {
					if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
						looptest.RunInput("t", "r1", asked)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				dying.Dead.Store(true)
				if err := shared.Retire(t.Context(), running(t, shared).Process); err != nil {
					t.Fatal(err)
				}
			}
			e := looptest.Start(t, shared, nil, agent)
			reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
			events := looptest.Collect(t, reply, err)
			looptest.Succeeded(t, events)
			if n := calls.Load(); n != 3 {
				t.Errorf("the model was called %d times, want 3", n)
			}
			if got := onScreen([]agui.Message{asked}, events); !slices.Equal(got, want) {
				t.Errorf("the client shows %q, want %q\n%s", got, want, looptest.Show(events))
			}
		})
	})
}
