package loop_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestPendingWritesOff: a process dies while one of three calls still runs. With pending
// writes, the results of the two others are there; without, only that of the tool that must
// not run again, and the other tool runs once more.
func TestPendingWritesOff(t *testing.T) {
	for name, off := range map[string]bool{"on": false, "off": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := map[string]*atomic.Int32{"once": {}, "idempotent": {}, "slow": {}}
				agent := func(hang bool) holdfast.Agent {
					step := func(name string, effect holdfast.Effect) holdfast.Tool {
						return looptest.Tool(name, effect, func(ctx context.Context) (string, error) {
							started[name].Add(1)
							switch {
							case name == "slow" && hang:
								<-ctx.Done()
								return "", ctx.Err()
							case name == "idempotent":
								time.Sleep(time.Second) // after the other one was saved
							}
							return name, nil
						})
					}
					model := holdfast.ModelFunc(func(_ context.Context,
						req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
						return func(yield func(holdfast.Delta, error) bool) {
							if len(req.Messages) > 1 {
								yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
								return
							}
							for i, name := range []string{"once", "idempotent", "slow"} {
								if !yield(
									holdfast.Delta{
										Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: "{}"},
									},
									nil,
								) {
									return
								}
							}
							yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
						}
					})
					return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{
						step("once", holdfast.EffectOnce),
						step("idempotent", holdfast.EffectIdempotent),
						step("slow", holdfast.EffectPure),
					}}
				}
				shared := memstore.New()
				first := &looptest.Mortal{Store: shared}
				pending := func(c *looptest.Config) { c.NoPendingWrites = off }
				one := looptest.Start(t, first, pending, agent(true))
				if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				first.Dead.Store(true)
				two := looptest.Start(t, shared, pending, agent(false))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				again, results := int32(1), []string{"tool:idempotent", "tool:slow"}
				if off {
					again, results = 2, []string{"tool:slow", "tool:idempotent"}
				}
				for name, want := range map[string]int32{"once": 1, "idempotent": again, "slow": 2} {
					if got := started[name].Load(); got != want {
						t.Errorf("%s was started %d times, want %d", name, got, want)
					}
				}
				looptest.WantTexts(t, two, "t",
					append(append([]string{"user:go", "assistant:", "tool:once"}, results...), "assistant:done")...)
			})
		})
	}
}
