package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/store"
)

// TestKeptIsHandedBack: a call that has kept a value goes on from there in another process,
// whatever its effect, and is neither started again nor in doubt.
func TestKeptIsHandedBack(t *testing.T) {
	for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce,
		holdfast.EffectQuery} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j looptest.Notebook
				mortal := &looptest.Mortal{Store: memstore.New()}
				agent := func(dies bool) holdfast.Agent {
					return holdfast.Agent{
						Name:  "a",
						Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
						Tools: []holdfast.Tool{
							holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
								call := holdfast.CallFrom(ctx)
								j.Note("kept " + string(call.Kept))
								if call.Kept != nil {
									return "picked up", nil
								}
								if err := holdfast.Keep(ctx, json.RawMessage(`{"task":7}`)); err != nil {
									return "", err
								}
								j.Note("kept with " + string(holdfast.CallFrom(ctx).Kept))
								if dies {
									<-ctx.Done()
								}
								return "finished here", ctx.Err()
							}, holdfast.WithEffect(effect)),
						},
					}
				}
				one := looptest.Start(t, mortal, nil, agent(true))
				looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
				time.Sleep(time.Second)
				mortal.Dead.Store(true)
				other := looptest.Start(t, mortal.Store, nil, agent(false))
				time.Sleep(10 * time.Second)
				looptest.WantTexts(t, other, "t", "user:go", "assistant:", "tool:picked up", "assistant:done")
				if did := fmt.Sprint(j.Take()); did != `[kept  kept with {"task":7} kept {"task":7}]` {
					t.Errorf("the tool saw %s", did)
				}
				head := looptest.Must(other.Store.Head(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"}))(t)
				if strings.Contains(string(head.State), "task") {
					t.Errorf("it is not forgotten: %s", head.State)
				}
			})
		})
	}
}

// TestKeptBesideAQuestion: a call that asks a person goes on with what it had kept, and
// nobody else sees the value.
func TestKeptBesideAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
			call := holdfast.CallFrom(ctx)
			if call.Answer == nil {
				if err := holdfast.Keep(ctx, json.RawMessage(`"hidden handle"`)); err != nil {
					return "", err
				}
				return "", &holdfast.Interrupt{Message: "Go on?"}
			}
			return "with " + string(call.Kept), nil
		}, holdfast.WithEffect(holdfast.EffectOnce))
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{ask},
		})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		open := looptest.OpenOf(t, events)
		if shown := looptest.Show(events); strings.Contains(shown, "hidden handle") {
			t.Errorf("it is shown: %s", shown)
		}
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", `{}`, open...)))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:with "hidden handle"`, "assistant:done")
	})
}

// TestKeptAndRetried: a further attempt goes on from what the first one has kept.
func TestKeptAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
			if kept := holdfast.CallFrom(ctx).Kept; kept != nil {
				return "from " + string(kept), nil
			}
			return "", errors.Join(holdfast.Keep(ctx, json.RawMessage(`3`)), errors.New("it broke"))
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:       "a",
			Model:      looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
			Tools:      []holdfast.Tool{flaky},
			Middleware: []holdfast.Middleware{middleware.Retry(middleware.RetryOptions{Attempts: 2})},
		})
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))
		if got := strings.Join(looptest.Texts(t, e, "t"), " "); !strings.Contains(got, "tool:from 3") {
			t.Errorf("the result is %s", got)
		}
	})
}

// TestKeepRefuses: what cannot be kept is refused with the reason, and the call goes on.
func TestKeepRefuses(t *testing.T) {
	if err := holdfast.Keep(t.Context(), json.RawMessage(`1`)); !errors.Is(err, holdfast.ErrNoCall) {
		t.Errorf("outside a call: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		var large, bad error
		tool := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
			large = holdfast.Keep(ctx, json.RawMessage(`"`+strings.Repeat("x", 64<<10)+`"`))
			bad = holdfast.Keep(ctx, json.RawMessage(`{`))
			return "ok", nil
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{tool},
		})
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))
		if large == nil || bad == nil {
			t.Errorf("too large: %v; no JSON: %v", large, bad)
		}
	})
}

// TestKeepAfterTheCall: a tool that goes on after its run has given it up is told so, and
// does not wait for ever.
func TestKeepAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan error, 1)
		stubborn := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			late <- holdfast.Keep(ctx, json.RawMessage(`1`))
			return "", nil
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{stubborn},
		})
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(time.Second)
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		if err := <-late; err == nil {
			t.Error("it was kept for a call that is over")
		}
	})
}

// lost runs an agent whose tool does not know what became of its call.
func lost(t *testing.T, options ...holdfast.ToolOption) (*looptest.Engine, *looptest.Notebook, []agui.Event) {
	t.Helper()
	j := &looptest.Notebook{}
	var again atomic.Bool
	pay := holdfast.NewTool("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
		j.Note(holdfast.CallFrom(ctx).Key)
		if again.Swap(true) {
			return "paid", nil
		}
		return "", fmt.Errorf("the connection broke: %w", holdfast.ErrOutcomeUnknown)
	}, options...)
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("pay", `{}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{pay},
	})
	return e, j, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
}

// TestUnknownOutcome: a tool that cannot tell what became of its call puts it in doubt,
// while the process lives.
func TestUnknownOutcome(t *testing.T) {
	fate := func(f holdfast.Fate) holdfast.ToolOption {
		return holdfast.WithQuery(func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
			return holdfast.ToolResult{Text: "paid, says the bank"}, f, nil
		})
	}
	for name, c := range map[string]struct {
		option holdfast.ToolOption
		result string
	}{
		"idempotent": {holdfast.WithEffect(holdfast.EffectIdempotent), "the connection broke: " +
			holdfast.ErrOutcomeUnknown.Error()},
		"once":            {holdfast.WithEffect(holdfast.EffectOnce), thread.TextUnknown},
		"query, done":     {fate(holdfast.FateDone), "paid, says the bank"},
		"query, not done": {fate(holdfast.FateNotDone), thread.TextNotDone},
		"query, unknown":  {fate(holdfast.FateUnknown), thread.TextUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, j, events := lost(t, c.option)
				looptest.Succeeded(t, events)
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+c.result, "assistant:done")
				if did := j.Take(); len(did) != 1 {
					t.Errorf("the tool was called %d times", len(did))
				}
			})
		})
	}
}

// TestUnknownIsAsked: where a person decides about doubt, the question says what is known,
// and one answer allows one further call.
func TestUnknownIsAsked(t *testing.T) {
	for payload, result := range map[string]string{
		`{"outcome":"happened"}`:       loop.TextHappened,
		`{"outcome":"did_not_happen"}`: loop.TextDidNot,
		`{"outcome":"run_again"}`:      "paid",
	} {
		synctest.Test(t, func(t *testing.T) {
			e, _, events := lost(t, holdfast.WithEffect(holdfast.EffectOnce), holdfast.WithInDoubt(holdfast.DoubtAsk))
			asked := looptest.LastOf(events).(agui.RunFinished).Outcome.Interrupts
			if len(asked) != 1 || strings.Contains(asked[0].Message, "died") || asked[0].Reason != "holdfast:in_doubt" {
				t.Fatalf("the questions are %+v", asked)
			}
			looptest.Succeeded(t, looptest.Posted(t, e,
				looptest.Answers("t", "r2", payload, looptest.OpenOf(t, events)...)))
			looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+result, "assistant:done")
		})
	}
}

// TestTimeUpIsDoubt: when the time of a call is up that must not be made twice, it is in
// doubt, and neither the middleware nor the run makes it again.
func TestTimeUpIsDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		option holdfast.ToolOption
		result string
		calls  int
	}{
		"once": {holdfast.WithEffect(holdfast.EffectOnce), thread.TextUnknown, 1},
		"idempotent": {holdfast.WithEffect(holdfast.EffectIdempotent),
			"pay did not finish within 1m0s and was given up. It may still have taken effect.\n[It was tried 3 times.]",
			3},
		"query": {holdfast.WithQuery(func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate,
			error) {
			return holdfast.ToolResult{Text: "paid, says the bank"}, holdfast.FateDone, nil
		}), "paid, says the bank", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &looptest.Notebook{}
				pay := holdfast.NewTool("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
					j.Note("pay")
					<-ctx.Done()
					return "", ctx.Err()
				}, c.option)
				e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
					Name:  "a",
					Model: looptest.Say(looptest.Calls("pay", `{}`), holdfast.Delta{Text: "done"}),
					Tools: []holdfast.Tool{pay},
					Middleware: []holdfast.Middleware{
						middleware.Retry(middleware.RetryOptions{}),
						middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(time.Minute)}),
					},
				})
				looptest.Succeeded(t, looptest.Posted(t, e,
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+c.result, "assistant:done")
				if did := j.Take(); len(did) != c.calls {
					t.Errorf("the tool was called %d times", len(did))
				}
			})
		})
	}
}
