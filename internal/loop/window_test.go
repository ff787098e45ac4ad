package loop_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Summaries and overflows, in runs whose processes die.

// summaries returns how many summaries a history has.
func summaries(t *testing.T, e *looptest.Engine, id string) (n int) {
	t.Helper()
	for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, id))(t) {
		if strings.Contains(string(raw), `"activityType":"holdfast.summary"`) {
			n++
		}
	}
	return n
}

// TestASummaryIsPaidForOnce: whichever commit a process dies after, the history has one
// summary in the end. If it was durable, the model was asked for it once.
func TestASummaryIsPaidForOnce(t *testing.T) {
	for dies := int32(1); ; dies++ {
		commits := int32(0)
		synctest.Test(t, func(t *testing.T) {
			made := 0
			agent := func(window bool) holdfast.Agent {
				a := holdfast.Agent{
					Name: "a",
					Model: holdfast.ModelFunc(func(_ context.Context,
						req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
						return func(yield func(holdfast.Delta, error) bool) {
							if req.Messages[0].ID == "summary" {
								made++
							}
							for _, word := range []string{"some ", "words"} {
								time.Sleep(time.Second / 8) // for what came before to be committed
								if !yield(holdfast.Delta{Text: word}, nil) {
									return
								}
							}
							yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
						}
					}),
				}
				if window {
					a.Middleware = []holdfast.Middleware{
						middleware.HistoryWindow(middleware.HistoryWindowOptions{
							MaxMessages:  4,
							Then:         middleware.WindowSummarise,
							SummaryEvery: 1,
						}),
					}
				}
				return a
			}
			shared := memstore.New()
			before := looptest.Start(t, shared, nil, agent(false))
			for i := range 3 {
				looptest.Succeeded(t, looptest.Posted(t, before,
					looptest.RunInput("t", fmt.Sprint("r", i), looptest.UserSays(fmt.Sprint("u", i), "go"))))
			}
			if err := before.Owner.Shutdown(t.Context()); err != nil { // or it would take over
				t.Fatal(err)
			}
			first := &shortLived{Mortal: looptest.Mortal{Store: shared}, after: dies}
			one := looptest.Start(t, first, nil, agent(true))
			_, _ = one.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r3", looptest.UserSays("u3", "go")))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			first.Dead.Store(true)
			durable := summaries(t, before, "t")
			two := looptest.Start(t, shared, nil, agent(true))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := summaries(t, two, "t"); n != 1 || durable == 1 && made != 1 || made > 2 {
				t.Errorf("dead after %d commits: %d summaries are in the history, %d were durable then, %d were made",
					dies, n, durable, made)
			}
			if texts := looptest.Texts(t, two, "t"); texts[len(texts)-1] != "assistant:some words" || len(texts) != 9 {
				t.Errorf("dead after %d commits: %q", dies, texts)
			}
			sound(t, shared, "t")
			commits = first.commits.Load()
		})
		if commits < dies || t.Failed() { // it ended before it could die
			if dies < 5 {
				t.Errorf("only %d commits were tried", dies)
			}
			return
		}
	}
}

// TestAnOverflowIsAnsweredInARun: the same model is asked once more, and shown less. The
// next run shows as little from the beginning.
func TestAnOverflowIsAnsweredInARun(t *testing.T) {
	t.Parallel()
	refused := 0
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if len(req.Messages) > 6 {
				refused++
				yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.TooLong, Public: "It is too long."})
				return
			}
			yield(
				holdfast.Delta{
					Text:   fmt.Sprintf("shown %d, cut %q", len(req.Messages), req.Cut),
					Finish: holdfast.FinishStop,
				},
				nil,
			)
		}
	})
	window := middleware.HistoryWindow(middleware.HistoryWindowOptions{OnOverflow: middleware.WindowShrink})
	db := memstore.New()
	e := looptest.Start(t, db, nil, holdfast.Agent{Name: "a", Model: model, Middleware: []holdfast.Middleware{window}})
	say := func(i int) string {
		events := looptest.Posted(t, e,
			looptest.RunInput("t", fmt.Sprint("r", i), looptest.UserSays(fmt.Sprint("u", i), "what about this")))
		looptest.Succeeded(t, events)
		texts := looptest.Texts(t, e, "t")
		return texts[len(texts)-1]
	}
	for i := range 3 {
		say(i)
	}
	if got := say(3); !strings.HasSuffix(got, `cut "window"`) || refused != 1 {
		t.Errorf("%s after %d", got, refused)
	}
	if got := say(4); !strings.HasSuffix(got, `cut ""`) || refused != 1 {
		t.Errorf("%s after %d", got, refused)
	}
	sound(t, db, "t")

	// Without a window it is an error, which people and programs understand.
	plain := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name: "a",
		Model: holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.TooLong, Public: "It is too long."})
			}
		}),
	})
	looptest.Failed(t, looptest.Started(t, plain, "t"), "model_failed")
}
