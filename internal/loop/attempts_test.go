package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The reactions to a model's failure: another try, another model, or the end.

// turn is what a named model does with one call: it says its deltas, and fails with its
// error if it has one.
type turn struct {
	deltas []holdfast.Delta
	err    error
	wait   bool // until its context is done
}

// player is a model with a name that plays its turns, the last one for ever.
type player struct {
	model string
	mu    sync.Mutex
	turns []turn
	asked []*holdfast.ModelRequest
}

func plays(model string, turns ...turn) *player { return &player{model: model, turns: turns} }

// ModelName says whose model it is.
func (p *player) ModelName() (string, string) { return "test", p.model }

// calls returns how often the model was asked.
func (p *player) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// Stream implements [holdfast.Model].
func (p *player) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		p.mu.Lock()
		now := p.turns[min(len(p.asked), len(p.turns)-1)]
		p.asked = append(p.asked, req)
		p.mu.Unlock()
		for _, d := range now.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if now.wait {
			<-ctx.Done()
		}
		if now.err != nil {
			yield(holdfast.Delta{}, now.err)
		}
	}
}

// says is a turn that answers.
func says(text string) turn {
	return turn{deltas: []holdfast.Delta{{Text: text}, {Finish: holdfast.FinishStop}}}
}

// pings is a turn that calls the tool ping.
func pings(id string) turn {
	return turn{
		deltas: []holdfast.Delta{
			{Call: &holdfast.CallDelta{ID: id, Name: "ping", Arguments: "{}"}},
			{Finish: holdfast.FinishToolCalls},
		},
	}
}

// breaks is a turn that fails after these deltas.
func breaks(kind failure.Kind, deltas ...holdfast.Delta) turn {
	retry := slices.Contains([]failure.Kind{failure.Cut, failure.Overloaded, failure.Rate}, kind)
	return turn{
		deltas: deltas,
		err: &holdfast.ModelError{
			Kind:      kind,
			Retryable: retry,
			Public:    "public " + string(kind),
			Err:       errors.New("cause"),
		},
	}
}

// chained is an agent with these models and the tool ping.
func chained(models ...*player) holdfast.Agent {
	a := holdfast.Agent{Name: "a", Model: models[0], Tools: []holdfast.Tool{
		looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil }),
	}}
	for _, m := range models[1:] {
		a.Fallbacks = append(a.Fallbacks, m)
	}
	return a
}

// fallbacks returns the events that tell of a fallback, as "from>to".
func fallbacks(t *testing.T, events []agui.Event) []string {
	t.Helper()
	var out []string
	for _, ev := range events {
		c, ok := ev.(agui.Custom)
		if !ok || c.Name != "holdfast.fallback" {
			continue
		}
		var v struct{ From, To string }
		if err := json.Unmarshal(c.Value, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v.From+">"+v.To)
	}
	return out
}

// TestFallback: the second model's answer takes the place of what the first one has shown,
// for each kind of failure after which another model is asked.
func TestFallback(t *testing.T) {
	half := []holdfast.Delta{
		{Reasoning: "hm"},
		{Text: "I wi"},
		{Call: &holdfast.CallDelta{ID: "c1", Name: "ping", Arguments: "{"}},
	}
	for kind, tries := range map[failure.Kind]int{failure.Cut: 3, failure.Overloaded: 2, failure.Rate: 2,
		failure.Quota: 1, failure.Auth: 1, failure.TooLong: 1, "": 1} {
		for shown, deltas := range map[string][]holdfast.Delta{"nothing": nil, "a part": half} {
			t.Run(string(kind)+" after "+shown, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := plays("one", breaks(kind, deltas...)), plays("two", pings("c1"), says("done"))
					e := looptest.Start(t, memstore.New(), nil, chained(first, second))
					asked := looptest.UserSays("u1", "go")
					events := looptest.Posted(t, e, looptest.RunInput("t", "r1", asked))
					looptest.Succeeded(t, events)
					if first.calls() != tries || second.calls() != 2 {
						t.Errorf("the models were called %d and %d times, want %d and 2", first.calls(),
							second.calls(), tries)
					}
					if got := fallbacks(t, events); !slices.Equal(got, []string{"test/one>test/two"}) {
						t.Errorf("fallbacks %q\n%s", got, looptest.Show(events))
					}
					looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:pong", "assistant:done")
					// Without reasoning in the history, stock clients keep what they saw.
					got := slices.DeleteFunc(onScreen([]agui.Message{asked}, events), func(s string) bool {
						return s == "reasoning:hm"
					})
					if want := []string{
						"user:go",
						"assistant:",
						"ping{}",
						"tool:pong",
						"assistant:done",
					}; !slices.Equal(got, want) {
						t.Errorf("the client shows %q, want %q\n%s", got, want, looptest.Show(events))
					}
					if req := second.asked[0]; req.Model != "test/two" || req.Attempt != tries ||
						len(req.Messages) != 1 {
						t.Errorf("the second model was asked %+v", req)
					}
				})
			})
		}
	}
}

// TestNoFallback: after some failures no other model is asked, unless the agent wants it.
func TestNoFallback(t *testing.T) {
	for name, c := range map[string]struct {
		kind    failure.Kind
		refused bool
		others  bool
	}{
		"invalid": {failure.Invalid, true, false}, "refused": {failure.Refused, false, false},
		"refused, as configured": {failure.Refused, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := plays("one", breaks(c.kind, holdfast.Delta{Text: "I"})), plays("two", says("done"))
			agent := chained(first, second)
			agent.FallbackRefused = c.refused
			e := looptest.Start(t, memstore.New(), nil, agent)
			events := looptest.Started(t, e, "t")
			if c.others {
				looptest.Succeeded(t, events)
			} else {
				looptest.Failed(t, events, codes.ModelFailed)
			}
			if first.calls() != 1 || second.calls() > 0 != c.others {
				t.Errorf("the models were called %d and %d times", first.calls(), second.calls())
			}
		})
	}
}

// TestEveryModelFails: the run ends once all have failed, with the error of one that may
// answer later if there is one.
func TestEveryModelFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := []*player{
			plays("one", breaks(failure.Quota)),
			plays("two", breaks(failure.Overloaded)),
			plays("three", breaks(failure.Auth)),
		}
		e := looptest.Start(t, memstore.New(), nil, chained(models...))
		events := looptest.Started(t, e, "t")
		ev := looptest.Failed(t, events, codes.ModelFailed)
		if !strings.Contains(ev.FullText(), "public overloaded") {
			t.Errorf("the error is %s", ev.FullText())
		}
		if got, want := fallbacks(t, events), []string{
			"test/one>test/two",
			"test/two>test/three",
		}; !slices.Equal(got, want) {
			t.Errorf("fallbacks %q, want %q", got, want)
		}
		if a, b, c := models[0].calls(), models[1].calls(), models[2].calls(); a != 1 || b != 2 || c != 1 {
			t.Errorf("the models were called %d, %d and %d times", a, b, c)
		}
	})
}

// TestRunKeepsItsModel: a run that has fallen back asks the same model to its end, also
// after a restart and after a person's answer; the next run begins with the first one.
func TestRunKeepsItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, j := memstore.New(), &looptest.Notebook{}
		first, second := plays("one", breaks(failure.Auth), says("first again")),
			plays("two", pings("c1"), pings("c2"), turn{wait: true}, says("done"))
		agent := chained(first, second)
		agent.Middleware = []holdfast.Middleware{asksAt(1, j)}
		dying := &looptest.Mortal{Store: db}
		e := looptest.Start(t, dying, nil, agent)
		open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.Answers("t", "r2", "true", open...)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // in the third answer
		dying.Dead.Store(true)
		if err := db.Retire(t.Context(), running(t, db).Process); err != nil {
			t.Fatal(err)
		}
		other := looptest.Start(t, db, nil, agent)
		reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r2", store.Cursor{}, agui.DialectV1)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		if first.calls() != 1 || second.calls() != 4 {
			t.Errorf("the models were called %d and %d times", first.calls(), second.calls())
		}
		events := looptest.Posted(t, other, looptest.RunInput("t", "r3", looptest.UserSays("u2", "again")))
		looptest.Succeeded(t, events)
		if first.calls() != 2 || len(fallbacks(t, events)) > 0 {
			t.Errorf("the next run does not begin with the first model:\n%s", looptest.Show(events))
		}
	})
}

// TestModelIsGone: a run continues with the agent's first model if the one that it had is
// not configured any more.
func TestModelIsGone(t *testing.T) {
	db, j := memstore.New(), &looptest.Notebook{}
	agent := chained(plays("one", breaks(failure.Auth)), plays("two", pings("c1")))
	agent.Middleware = []holdfast.Middleware{asksAt(1, j)}
	e := looptest.Start(t, db, nil, agent)
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	third := plays("three", says("done"))
	agent = chained(third)
	agent.Middleware = []holdfast.Middleware{asksAt(1, j)}
	other := looptest.Start(t, db, nil, agent)
	looptest.Succeeded(t, looptest.Posted(t, other, looptest.Answers("t", "r2", "true", open...)))
	if third.calls() != 1 {
		t.Errorf("the model was called %d times", third.calls())
	}
}

// circuits is a circuit that does what a test says, and notes what it is told.
type circuits struct {
	mu    sync.Mutex
	until map[string]time.Time
	told  []string
}

// Open implements [loop.Circuit].
func (c *circuits) Open(model string) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, open := c.until[model]
	return until, open
}

// Begin implements [loop.Circuit].
func (c *circuits) Begin(model string) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, open := c.until[model]
	if !open {
		c.told = append(c.told, model)
	}
	return until, open
}

// Report implements [loop.Circuit].
func (c *circuits) Report(model string, kind failure.Kind, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, fmt.Sprintf("%s %q %s", model, kind, after))
}

// TestOpenCircuit: a model whose circuit is open is not asked while there is another; if
// all are open, the one that half-opens first is. The circuit is told of every outcome.
func TestOpenCircuit(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		until map[string]time.Time
		told  []string
	}{
		"none": {nil, []string{`test/one`, `test/one "" 0s`}},
		"first": {map[string]time.Time{"test/one": now},
			[]string{`test/two`, `test/two "auth" 0s`, `test/three`, `test/three "" 0s`}},
		"both": {map[string]time.Time{"test/one": now, "test/two": now}, []string{`test/three`, `test/three "" 0s`}},
		"all": {map[string]time.Time{"test/one": now.Add(2), "test/two": now.Add(3), "test/three": now.Add(1)},
			[]string{`test/three "" 0s`}},
		"all, 2": {map[string]time.Time{"test/one": now.Add(2), "test/two": now.Add(1), "test/three": now.Add(3)},
			[]string{`test/two "auth" 0s`, `test/one "" 0s`}},
	} {
		t.Run(name, func(t *testing.T) {
			known := &circuits{until: c.until}
			models := []*player{
				plays("one", says("one")),
				plays("two", breaks(failure.Auth)),
				plays("three", says("three")),
			}
			e := looptest.Start(t, memstore.New(), func(cfg *looptest.Config) { cfg.Circuit = known },
				chained(models...))
			looptest.Succeeded(t, looptest.Started(t, e, "t"))
			if !slices.Equal(known.told, c.told) {
				t.Errorf("told %q, want %q", known.told, c.told)
			}
		})
	}
}

// shrinking is a middleware that shows one message less for each overflow.
func shrinking() holdfast.Middleware {
	return holdfast.Middleware{Name: "test.shrinking", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
		return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			less := *req
			less.Messages = req.Messages[min(req.Overflows, len(req.Messages)-1):]
			return next(ctx, &less)
		}
	}}
}

// TestTooLong: a model that finds the conversation too long is asked once more if it can be
// shown less; otherwise another model is asked, or the run ends and says why.
func TestTooLong(t *testing.T) {
	long := breaks(failure.TooLong)
	three := []agui.Message{
		looptest.UserSays("u1", "one"),
		looptest.UserSays("u2", "two"),
		looptest.UserSays("u3", "three"),
	}
	for name, c := range map[string]struct {
		shrinks       bool
		first         []turn
		other         bool
		shown         []int // how many messages the first model was shown
		overflows     []int
		second, fails bool
	}{
		"shown less": {true, []turn{long, pings("c1"), says("done")}, true, []int{3, 2, 5}, []int{0, 1, 0},
			false, false},
		"still too long":        {true, []turn{long}, true, []int{3, 2}, []int{0, 1}, true, false},
		"still too long, alone": {true, []turn{long}, false, []int{3, 2}, []int{0, 1}, false, true},
		"nothing less":          {false, []turn{long}, true, []int{3}, []int{0}, true, false},
		"nothing less, alone":   {false, []turn{long}, false, []int{3}, []int{0}, false, true},
		"too long again, later": {true, []turn{long, pings("c1"), long, says("done")}, false, []int{3, 2, 5, 4},
			[]int{0, 1, 0, 1}, false, false},
		"too long for two tries": {true, []turn{long, breaks(failure.Cut), says("done")}, false, []int{3, 2, 2},
			[]int{0, 1, 1}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := plays("one", c.first...), plays("two", says("done"))
			models := []*player{first}
			if c.other {
				models = append(models, second)
			}
			agent := chained(models...)
			if c.shrinks {
				agent.Middleware = []holdfast.Middleware{shrinking()}
			}
			e := looptest.Start(t, memstore.New(), nil, agent)
			events := looptest.Posted(t, e, looptest.RunInput("t", "r1", three...))
			if c.fails {
				looptest.Failed(t, events, codes.ModelFailed)
			} else {
				looptest.Succeeded(t, events)
			}
			var shown, overflows []int
			for _, req := range first.asked {
				shown, overflows = append(shown, len(req.Messages)), append(overflows, req.Overflows)
			}
			if !slices.Equal(shown, c.shown) || !slices.Equal(overflows, c.overflows) {
				t.Errorf("the first model was shown %v after %v overflows, want %v after %v", shown, overflows,
					c.shown, c.overflows)
			}
			if c.second != (second.calls() > 0) ||
				c.second && (second.asked[0].Overflows != 0 || len(second.asked[0].Messages) != 3) {
				t.Errorf("the second model was asked %d times", second.calls())
			}
		})
	}
}

// TestBackOff: while a run waits to ask again, a cancel ends it, a shutdown leaves it to
// the next process, which goes on with the same model, and a DELETE finds it running.
func TestBackOff(t *testing.T) {
	busy := turn{
		deltas: []holdfast.Delta{{Text: "ha"}},
		err: &holdfast.ModelError{
			Kind:       failure.Rate,
			Retryable:  true,
			RetryAfter: 15 * time.Second,
			Err:        errors.New("429"),
		},
	}
	setting := func(t *testing.T) (*memstore.Store, *looptest.Engine, holdfast.Agent, *agui.Reply) {
		db := memstore.New()
		agent := chained(plays("one", breaks(failure.Auth)), plays("two", busy, says("done")))
		e := looptest.Start(t, db, nil, agent)
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		return db, e, agent, reply
	}
	t.Run("cancel", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, e, _, reply := setting(t)
			before := time.Now()
			looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
			events := looptest.Collect(t, reply, nil)
			if f, ok := looptest.LastOf(events).(agui.RunFinished); !ok || f.Outcome.Type != agui.OutcomeCancelled ||
				time.Since(before) > time.Second {
				t.Errorf("after %s:\n%s", time.Since(before), looptest.Show(events))
			}
			looptest.WantTexts(t, e, "t", "user:go", "assistant:ha")
		})
	})
	t.Run("shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db, e, agent, _ := setting(t)
			before := time.Now()
			if err := e.Shutdown(t.Context()); err != nil || time.Since(before) > time.Second {
				t.Errorf("it took %s: %v", time.Since(before), err)
			}
			other := looptest.Start(t, db, nil, agent)
			reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
			events := looptest.Collect(t, reply, err)
			looptest.Succeeded(t, events)
			if got := fallbacks(t, events); len(got) != 1 {
				t.Errorf("fallbacks %q, want one", got)
			}
			looptest.WantTexts(t, other, "t", "user:go", "assistant:done")
		})
	})
	t.Run("delete", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, e, _, reply := setting(t)
			if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "",
				false); looptest.Code(err) != codes.RunInProgress {
				t.Errorf("deleted: %v", err)
			}
			looptest.Succeeded(t, looptest.Collect(t, reply, nil))
			if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestShutdownBeforeAFallback: a server that is to stop asks no other model. The next one
// does, and does not ask the first again.
func TestShutdownBeforeAFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, stopping := memstore.New(), make(chan struct{})
		first, second := plays("one"), plays("two", says("done"))
		failing := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if yield(holdfast.Delta{Text: "ha"}, nil) {
					<-stopping
					yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.Auth})
				}
			}
		})
		agent := chained(first, second)
		agent.Model = failing
		e := looptest.Start(t, db, nil, agent)
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var stopped sync.WaitGroup
		stopped.Go(func() {
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(stopping)
		stopped.Wait()
		if second.calls() > 0 {
			t.Error("the stopping server asks the second model")
		}
		other := looptest.Start(t, db, nil, agent)
		reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		events := looptest.Collect(t, reply, err)
		looptest.Succeeded(t, events)
		if got := fallbacks(t, events); len(got) != 1 || second.calls() != 1 {
			t.Errorf("fallbacks %q, and %d calls of the second model", got, second.calls())
		}
		looptest.WantTexts(t, other, "t", "user:go", "assistant:done")
	})
}

// TestOperatorsAreTold: one line of the log for each failed try and one for the run, with
// what is needed to ask the provider, and the same to observers.
func TestOperatorsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := func(kind failure.Kind, status int, id string) turn {
			return turn{err: &holdfast.ModelError{
				Kind:      kind,
				Retryable: kind == failure.Overloaded,
				Provider:  "test",
				Model:     "m",
				Status:    status,
				RequestID: id,
				Err:       errors.New("cause " + id),
			}}
		}
		var log bytes.Buffer
		var seen []string
		observer := observe.Observer{
			ModelFailed: func(_ holdfast.Iteration, f observe.ModelFailure) {
				seen = append(seen, fmt.Sprintf("%+v", f))
			},
			FellBack: func(_ holdfast.Iteration, from, to string) { seen = append(seen, from+" to "+to) },
		}
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			c.Log, c.Observer = slog.New(slog.NewTextHandler(&log, nil)), observer
		}, chained(plays("one", failed(failure.Overloaded, 529, "q1"), failed(failure.Quota, 402, "q2")),
			plays("two", failed(failure.Auth, 401, "q3"))))
		looptest.Failed(t, looptest.Started(t, e, "t"), codes.ModelFailed)
		synctest.Wait()
		want := []string{
			"{Provider:test Model:one Kind:overloaded Status:529 RequestID:q1 Attempt:0 Next:retry Wait:200ms}",
			"{Provider:test Model:one Kind:quota Status:402 RequestID:q2 Attempt:1 Next:fallback Wait:0s}",
			"test/one to test/two",
			"{Provider:test Model:two Kind:auth Status:401 RequestID:q3 Attempt:2 Next:end Wait:0s}",
		}
		if !slices.Equal(seen, want) {
			t.Errorf("observed\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range []string{
			`msg="model call failed" thread=t run=r1 iteration=0 attempt=0 provider=test model=one kind=overloaded ` +
				`status=529 request=q1 next=retry in=200ms`,
			`msg="model call failed" thread=t run=r1 iteration=0 attempt=1 provider=test model=one kind=quota ` +
				`status=402 request=q2 next=fallback in=0s`,
			`msg="falling back to another model" thread=t run=r1 iteration=0 attempt=2 from=test/one to=test/two`,
			`msg="model call failed" thread=t run=r1 iteration=0 attempt=2 provider=test model=two kind=auth ` +
				`status=401 request=q3 next=end in=0s`,
			`msg="run failed" thread=t run=r1 iteration=0 code=model_failed attempts=3 provider=test model=m ` +
				`kind=auth status=401 request=q3`,
		} {
			if strings.Count(log.String(), line) != 1 {
				t.Errorf("the log lacks\n%s\nit is\n%s", line, &log)
			}
		}
	})
}
