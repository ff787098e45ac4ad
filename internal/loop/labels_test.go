package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// marked returns the thread's checkpoints, the oldest first, each with its source, step and label.
func marked(t *testing.T, e *looptest.Engine, id string) string {
	t.Helper()
	var all []string
	for _, cp := range looptest.Checkpoints(t, e, id) {
		said := fmt.Sprintf("%s %d", cp.Metadata.Source, cp.Metadata.Step)
		if cp.Metadata.Label != "" {
			said += " " + cp.Metadata.Label
		}
		all = append(all, said)
	}
	return strings.Join(all, "; ")
}

// marks is a tool that marks the next checkpoint.
func marks(name string, labels ...string) holdfast.Tool {
	return looptest.Tool(name, holdfast.EffectOnce, func(ctx context.Context) (string, error) {
		for _, label := range labels {
			if err := holdfast.Mark(ctx, label); err != nil {
				return "", err
			}
		}
		return "marked", nil
	})
}

// TestMark: tools and hooks mark the next checkpoint, which is listed whatever the frequency is.
func TestMark(t *testing.T) {
	for f, want := range map[loop.Frequency]string{
		loop.PerIteration: "input -1; loop 1 paid, again; loop 2; loop 3 over",
		loop.PerTurn:      "input -1; loop 1 paid, again; loop 3 over",
		loop.Manual:       "loop 1 paid, again; loop 3 over",
	} {
		t.Run(string(f), func(t *testing.T) {
			hook := holdfast.Middleware{
				Name: "acme.marks",
				AfterIteration: func(ctx context.Context, at *holdfast.Iteration, _ *holdfast.IterationResult) {
					if at.Number == 2 {
						if err := holdfast.Mark(ctx, "over"); err != nil {
							t.Error(err)
						}
					}
				},
			}
			db := memstore.New()
			e := looptest.Start(t, db, func(c *looptest.Config) { c.Frequency = f }, holdfast.Agent{
				Name: "a",
				Model: looptest.Say(looptest.Calls("pay", "{}"), looptest.Calls("look", "{}"),
					holdfast.Delta{Text: "done"}),
				Tools:      []holdfast.Tool{marks("pay", "paid", "again", "paid"), marks("look")},
				Middleware: []holdfast.Middleware{hook},
			})
			looptest.Succeeded(t, looptest.Started(t, e, "t"))
			if got := marked(t, e, "t"); got != want {
				t.Errorf("the checkpoints are %s, want %s", got, want)
			}
			sound(t, db, "t")
			at := looptest.Checkpoints(t, e, "t")
			i := slices.IndexFunc(at, func(cp threads.Checkpoint) bool { return cp.Metadata.Label == "paid, again" })
			back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
				threads.Travel{Checkpoint: at[i].ID}))(t)
			looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:marked")
			if back.Checkpoint.Metadata.Label != "" || back.Checkpoint.RunStartedAt.IsZero() ||
				!back.Checkpoint.RunStartedAt.Equal(at[i].RunStartedAt) {
				t.Errorf("it went back to %+v", back.Checkpoint)
			}
			forked := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
				threads.Travel{Checkpoint: at[i].ID}))(t)
			if !forked.Checkpoint.RunStartedAt.Equal(at[i].RunStartedAt) {
				t.Errorf("it was forked to %+v", forked.Checkpoint)
			}
		})
	}
}

// TestMarkRefuses: a label that nobody could read in a list is refused, and so is a mark outside
// of a run.
func TestMarkRefuses(t *testing.T) {
	if err := holdfast.Mark(t.Context(), "x"); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("outside of a run: %v", err)
	}
	var refused []string
	try := looptest.Tool("try", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
		for _, label := range []string{"", "two\nlines", "\xff", strings.Repeat("x", 257)} {
			if err := holdfast.Mark(ctx, label); looptest.Code(err) != codes.InvalidInput {
				refused = append(refused, fmt.Sprintf("%.20q: %v", label, err))
			}
		}
		for n := range 8 {
			err := holdfast.Mark(ctx, fmt.Sprint(n, strings.Repeat("x", 200)))
			if taken := n < 4; taken != (err == nil) {
				refused = append(refused, fmt.Sprintf("label %d: %v", n, err))
			}
		}
		return "tried", nil
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("try", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{try},
	})
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	if len(refused) > 0 {
		t.Errorf("%s", strings.Join(refused, "\n"))
	}
}

// TestMarkSurvives: a mark is stored with the result of its call, so the server that goes on with
// the run lists the checkpoint.
func TestMarkSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		manual := func(c *looptest.Config) { c.Frequency = loop.Manual }
		agent := func(hangs bool) holdfast.Agent {
			hang := looptest.Tool("look", holdfast.EffectPure, func(ctx context.Context) (string, error) {
				if hangs {
					<-ctx.Done()
				}
				return "seen", ctx.Err()
			})
			return holdfast.Agent{
				Name:  "a",
				Model: looptest.TwoCalls("pay", "look"),
				Tools: []holdfast.Tool{marks("pay", "paid"), hang},
			}
		}
		one := looptest.Start(t, first, manual, agent(true))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		first.Dead.Store(true)
		two := looptest.Start(t, shared, manual, agent(false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:marked", "tool:seen", "assistant:done")
		if got := marked(t, two, "t"); got != "loop 1 paid" {
			t.Errorf("the checkpoints are %s", got)
		}
	})
}

// TestMarkWhileItRuns: a person takes a checkpoint of a run that is under way, at its server or at
// another one, and can go back to it when the run has ended.
func TestMarkWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		var paid atomic.Int32
		release := make(chan struct{})
		pay := looptest.Tool("pay", holdfast.EffectOnce, func(context.Context) (string, error) {
			paid.Add(1)
			<-release
			return "paid", nil
		})
		model := holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return looptest.Say(looptest.Calls("look", "{}"), looptest.Calls("pay", "{}"),
				holdfast.Delta{Text: "done"}).
				Stream(t.Context(), req)
		})
		manual := func(c *looptest.Config) { c.Frequency = loop.Manual }
		agent := holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{marks("look"), pay}}
		owner, other := looptest.Start(t, shared, manual, agent), looptest.Start(t, shared, manual, agent)
		if _, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for label, e := range map[string]*looptest.Engine{"here": owner, "there": other} {
			made := looptest.Must(e.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{Label: label}))(t)
			if made.Metadata.Label != label || made.Metadata.Source != "update" || made.RunStartedAt.IsZero() ||
				made.Status != threads.StatusRunning || made.Messages != 4 {
				t.Errorf("%s: %+v", label, made)
			}
		}
		if _, err := owner.Keeper.Mark(t.Context(), looptest.Alice, "t",
			threads.Mark{State: []byte(`{"a":1}`)}); looptest.Code(err) != codes.RunInProgress {
			t.Errorf("with a state: %v", err)
		}
		if _, err := owner.Keeper.Mark(t.Context(), looptest.Alice, "t",
			threads.Mark{Label: "two\nlines"}); looptest.Code(err) != codes.InvalidInput {
			t.Errorf("with two lines: %v", err)
		}
		close(release)
		synctest.Wait()
		looptest.WantTexts(t, other, "t", "user:go", "assistant:", "tool:marked", "assistant:", "tool:paid",
			"assistant:done")
		all := looptest.Checkpoints(t, owner, "t")
		if len(all) != 2 {
			t.Fatalf("there are %d checkpoints", len(all))
		}
		sound(t, shared, "t")
		back := looptest.Must(owner.Keeper.Rewind(t.Context(), looptest.Alice, "t",
			threads.Travel{Checkpoint: all[0].ID}))(t)
		if len(back.Effects) != 1 || back.Effects[0].Tool != "pay" {
			t.Errorf("it went back before %+v", back.Effects)
		}
		sound(t, shared, "t")
		looptest.Resumed(t, owner, "t", "r2")
		synctest.Wait()
		if n := paid.Load(); n != 1 {
			t.Errorf("the call was made %d times", n)
		}
		made := looptest.Must(owner.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{Label: "still"}))(t)
		if made.RunStartedAt.IsZero() {
			t.Errorf("at rest: %+v", made)
		}
	})
}
