package loop_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// Words are held back while a model that broke off is asked again.

// words are the deltas of a text, word by word.
func words(text string) []holdfast.Delta {
	var out []holdfast.Delta
	for _, w := range strings.SplitAfter(text, " ") {
		out = append(out, holdfast.Delta{Text: w})
	}
	return out
}

// told returns the names of the CUSTOM events, and how many answers have begun to show.
func told(events []agui.Event) (names []string, begun int) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case agui.Custom:
			names = append(names, ev.Name)
		case agui.TextMessageStart:
			begun++
		}
	}
	return names, begun
}

// TestWordsAreHeldBack: while a model that broke off is asked again, people keep what they have
// read. It makes way for an answer that is complete or longer, or for another model's.
func TestWordsAreHeldBack(t *testing.T) {
	whole := func(text string) turn {
		return turn{deltas: append(words(text), holdfast.Delta{Finish: holdfast.FinishStop})}
	}
	half := breaks(failure.Cut, words("I am only")...)
	for name, c := range map[string]struct {
		first []turn
		names []string
		begun int
		text  string
	}{
		"dies thrice": {[]turn{half}, []string{"holdfast.fallback"}, 2, "done"},
		"dies ever earlier": {[]turn{half, breaks(failure.Cut, words("I am")...), breaks(failure.Cut)},
			[]string{"holdfast.fallback"}, 2, "done"},
		"dies later": {[]turn{half, breaks(failure.Cut, words("I am only half")...), half},
			[]string{"holdfast.retry", "holdfast.fallback"}, 3, "done"},
		"goes on": {[]turn{half, whole("I am only half done")}, []string{"holdfast.retry"}, 2,
			"I am only half done"},
		"says less": {[]turn{half, whole("Me")}, []string{"holdfast.retry"}, 2, "Me"},
		"goes on at the third": {[]turn{half, half, whole("I am only half done")}, []string{"holdfast.retry"}, 2,
			"I am only half done"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := looptest.Start(t, memstore.New(), nil,
					chained(plays("one", c.first...), plays("two", whole("done"))))
				asked := looptest.UserSays("u1", "go")
				events := looptest.Posted(t, e, looptest.RunInput("t", "r1", asked))
				looptest.Succeeded(t, events)
				if names, begun := told(events); !slices.Equal(names, c.names) || begun != c.begun {
					t.Errorf("%d answers begin, and %q is said, want %d and %q\n%s", begun, names, c.begun, c.names,
						looptest.Show(events))
				}
				want := []string{"user:go", "assistant:" + c.text}
				if got := onScreen([]agui.Message{asked}, events); !slices.Equal(got, want) {
					t.Errorf("the client shows %q, want %q", got, want)
				}
				looptest.WantTexts(t, e, "t", want...)
			})
		})
	}
}

// TestCallsAreHeldBack with reasoning, in their order, and with ids of their own.
func TestCallsAreHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := holdfast.CallDelta{Index: 1, ID: "c1", Name: "ping", Arguments: "{"}
		half := []holdfast.Delta{{Reasoning: "hm"}, {Text: "I wi"}, {Text: "ll"}, {Call: &call}}
		overwritten := holdfast.ModelFunc(func(context.Context,
			*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				c := call
				for i, d := range half {
					if d.Call != nil {
						d.Call = &c
					}
					if i == 2 {
						d.Usage = &holdfast.Usage{Provider: "test", Model: "one", OutputTokens: new(int64(3))}
					}
					if !yield(d, nil) {
						return
					}
				}
				c.ID, c.Name, c.Arguments = "", "", "}"
				yield(holdfast.Delta{Call: &c, Finish: holdfast.FinishToolCalls}, nil)
			}
		})
		first := plays("one", breaks(failure.Cut, half...))
		agent := chained(first)
		agent.Model = holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			switch {
			case req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool:
				return plays("one", says("done")).Stream(ctx, req)
			case first.calls() == 0:
				return first.Stream(ctx, req)
			}
			return overwritten(ctx, req)
		})
		e := looptest.Start(t, memstore.New(), nil, agent)
		asked := looptest.UserSays("u1", "go")
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", asked))
		looptest.Succeeded(t, events)
		want := []string{"user:go", "reasoning:hm", "assistant:I will", "ping{}", "tool:pong", "assistant:done"}
		if got := onScreen([]agui.Message{asked}, events); !slices.Equal(got, want) {
			t.Errorf("the client shows %q, want %q\n%s", got, want, looptest.Show(events))
		}
		wantFresh(t, e, 2, "r1")
	})
}

// TestBoundOfHeldBack: no more is held back than may wait for the store.
func TestBoundOfHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := make([]holdfast.Delta, 200)
		for i := range long {
			long[i].Text = "0123456789"
		}
		stuck := turn{deltas: long[:150], wait: true}
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.BufferBytes = 1000 },
			chained(plays("one", breaks(failure.Cut, long...), stuck)))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		events := looptest.Collect(t, reply, nil)
		if names, begun := told(events); !slices.Equal(names, []string{"holdfast.retry"}) || begun != 2 {
			t.Errorf("%d answers begin, and %q is said", begun, names)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:"+strings.Repeat("0123456789", 150))
	})
}

// TestCancelWhileHeldBack keeps what people have read, not what waits.
func TestCancelWhileHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil,
			chained(plays("one", breaks(failure.Cut, words("I am only")...),
				turn{deltas: words("We are"), wait: true})))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		if f, ok := looptest.LastOf(looptest.Collect(t, reply, nil)).(agui.RunFinished); !ok ||
			f.Outcome.Type != agui.OutcomeCancelled {
			t.Errorf("the run ended with %+v", f)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:I am only")
	})
}

// TestHooksWhileHeldBack: what a hook records or asks when a model is asked again does not come
// into the middle of what is on the screen.
func TestHooksWhileHeldBack(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			agent := chained(plays("one", breaks(failure.Cut, words("I am only")...),
				breaks(failure.Cut, words("I am only")...), says("I am only half done")))
			agent.Middleware = []holdfast.Middleware{{
				Name: "test.noting",
				Model: func(next holdfast.ModelCall) holdfast.ModelCall {
					return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
						if asks && req.Attempt == 1 {
							return func(yield func(holdfast.Delta, error) bool) {
								yield(holdfast.Delta{}, &holdfast.Interrupt{Message: "Again?"})
							}
						}
						err := holdfast.Record(ctx, "test.seen", map[string]string{})
						if err != nil {
							t.Error(err)
						}
						return next(ctx, req)
					}
				},
			}}
			e := looptest.Start(t, memstore.New(), nil, agent)
			events := looptest.Started(t, e, "t")
			names, begun := told(events)
			if asks {
				looptest.OpenOf(t, events)
				looptest.WantTexts(t, e, "t", "user:go", "activity:")
			} else {
				looptest.Succeeded(t, events)
				looptest.WantTexts(t, e, "t", "user:go", "activity:", "activity:", "activity:",
					"assistant:I am only half done")
			}
			if !slices.Equal(names, []string{"holdfast.retry"}) || begun > 2 {
				t.Errorf("asks %t: %d answers begin, and %q is said\n%s", asks, begun, names, looptest.Show(events))
			}
		})
	}
}
