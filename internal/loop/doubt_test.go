package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// doubtful runs an agent with one tool until its process dies in the middle of the
// call, and returns an engine that has taken the run over, and what the tool did.
func doubtful(t *testing.T, options ...holdfast.ToolOption) (*looptest.Engine, *looptest.Notebook) {
	t.Helper()
	j := &looptest.Notebook{}
	store := &looptest.Mortal{Store: memstore.New()}
	hang := func(e *looptest.Mortal) holdfast.Agent {
		pay := holdfast.NewTool("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
			j.Note(holdfast.CallFrom(ctx).Key)
			if e != nil {
				<-ctx.Done()
				return "", ctx.Err()
			}
			if holdfast.CallFrom(ctx).Again {
				return "paid again", nil
			}
			return "paid", nil
		}, options...)
		return holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("pay", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{pay},
		}
	}
	one := looptest.Start(t, store, nil, hang(store))
	if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	store.Dead.Store(true)
	if did := j.Take(); len(did) != 1 {
		t.Fatalf("the first process did %q", did)
	}
	other := looptest.Start(t, store.Store, nil, hang(nil))
	time.Sleep(10 * time.Second)
	return other, j
}

// TestStartedBefore: a tool is told that its call may have been started before, by an owner that
// is gone, and of no other call.
func TestStartedBefore(t *testing.T) {
	for _, c := range []struct {
		effect holdfast.Effect
		asked  bool
	}{
		{holdfast.EffectPure, false}, {holdfast.EffectPure, true},
		{holdfast.EffectIdempotent, false}, {holdfast.EffectIdempotent, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			shared := &looptest.Mortal{Store: memstore.New()}
			again := make(chan bool, 3)
			agent := func(during func(context.Context) error) holdfast.Agent {
				work := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
					again <- holdfast.CallFrom(ctx).Again
					return "done", during(ctx)
				}, holdfast.WithEffect(c.effect))
				a := holdfast.Agent{
					Name:  "a",
					Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
					Tools: []holdfast.Tool{work},
				}
				if c.asked {
					a.Middleware = []holdfast.Middleware{looptest.AsksLeave(time.Time{}, "work")}
				}
				return a
			}
			one := looptest.Start(t, shared, nil, agent(untilStopped))
			if in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")); c.asked {
				open := looptest.OpenOf(t, looptest.Posted(t, one, in))
				in = looptest.Answers("t", "r2", `{"approved":true}`, open...)
				looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "", in))(t)
			} else {
				looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "", in))(t)
			}
			time.Sleep(time.Second)
			shared.Dead.Store(true)
			looptest.Start(t, shared.Store, nil, agent(never))
			time.Sleep(10 * time.Second)
			if first, second := <-again, <-again; first || !second {
				t.Errorf("%+v: the first start is told %t, and the second one %t", c, first, second)
			}
		})
	}
}

// TestQuery: a tool that can be asked is asked, and not started again if it has done
// the work.
func TestQuery(t *testing.T) {
	for name, c := range map[string]struct {
		fate   holdfast.Fate
		err    error
		starts int
		result string
	}{
		"done":     {holdfast.FateDone, nil, 0, "tool:paid before"},
		"not done": {holdfast.FateNotDone, nil, 1, "tool:paid again"},
		"unknown":  {holdfast.FateUnknown, nil, 0, "tool:" + thread.TextInDoubt},
		"failed":   {"", errors.New("no answer"), 0, "tool:" + thread.TextInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var questions looptest.Notebook
				e, j := doubtful(t, holdfast.WithQuery(func(ctx context.Context,
					call holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
					questions.Note(call.Key)
					if within := holdfast.CallFrom(ctx); within.Principal != call.Principal ||
						within.Principal.User == "" || within.Key != "" {
						t.Errorf("transports see %+v", within)
					}
					return holdfast.ToolResult{Text: "paid before"}, c.fate, c.err
				}))
				asked := questions.Take()
				if len(asked) != 1 {
					t.Errorf("the tool was asked for %q", asked)
				}
				if did := j.Take(); len(did) != c.starts || (c.starts > 0 && did[0] != asked[0]) {
					t.Errorf("the tool was started for %q, want %d times, with the same key", did, c.starts)
				}
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", c.result, "assistant:done")
			})
		})
	}
}

// TestPersonDecides: a call in doubt becomes a question with what is known, and the
// answer decides.
func TestPersonDecides(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		status  string
		starts  int
		result  string
	}{
		"it happened": {`{"outcome":"happened","result":"paid, says the bank"}`, agui.ResumeResolved, 0,
			"tool:paid, says the bank"},
		"without a result":  {`{"outcome":"happened"}`, agui.ResumeResolved, 0, "tool:" + loop.TextHappened},
		"it did not happen": {`{"outcome":"did_not_happen"}`, agui.ResumeResolved, 0, "tool:" + loop.TextDidNot},
		"run it again":      {`{"outcome":"run_again"}`, agui.ResumeResolved, 1, "tool:paid again"},
		"declined":          {``, agui.ResumeCancelled, 0, "tool:" + thread.TextInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, j := doubtful(t, holdfast.WithEffect(holdfast.EffectOnce), holdfast.WithInDoubt(holdfast.DoubtAsk))
				events := looptest.Resumed(t, e, "t", "r2")
				end := looptest.LastOf(events).(agui.RunFinished)
				if end.Outcome == nil || len(end.Outcome.Interrupts) != 1 {
					t.Fatalf("nobody is asked: %s", looptest.Show(events))
				}
				ask := end.Outcome.Interrupts[0]
				if ask.Reason != "holdfast:in_doubt" || !strings.Contains(ask.Message, "pay") ||
					!json.Valid(ask.ResponseSchema) {
					t.Errorf("the question is %+v", ask)
				}
				in := looptest.RunInput("t", "r3")
				in.Resume = []agui.ResumeEntry{
					{InterruptID: ask.ID, Status: c.status, Payload: json.RawMessage(c.payload)},
				}
				reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
				looptest.Succeeded(t, looptest.Collect(t, reply, err))
				if did := j.Take(); len(did) != c.starts {
					t.Errorf("the tool was started for %q", did)
				}
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", c.result, "assistant:done")
				intents := looptest.Must(e.Store.Values(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"},
					store.KindIntent, "", 0))(t)
				if len(intents) != 0 {
					t.Errorf("%d intents are left", len(intents))
				}
			})
		})
	}
}

// TestWordOfAPerson: what a person says came of a call is not what the tool has said, and
// is not reused as if it were.
func TestWordOfAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, j := doubtful(t, holdfast.WithEffect(holdfast.EffectOnce), holdfast.WithInDoubt(holdfast.DoubtAsk))
		open := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r2"))
		looptest.Succeeded(t, looptest.Posted(t, e,
			looptest.Answers("t", "r3", `{"outcome":"happened","result":"FORGED"}`, open...)))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:FORGED", "assistant:done")
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
			threads.Travel{Message: "u1", ReuseResults: true}))(t)
		looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r4"))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:paid", "assistant:done")
		if did := j.Take(); len(did) != 1 {
			t.Errorf("the tool was started %d times", len(did))
		}
	})
}

// TestWordBesideCalls: a person's word on one call is taken while another call runs. The
// race detector checks it.
func TestWordBesideCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &looptest.Mortal{Store: memstore.New()}
		agent := func(hang bool) holdfast.Agent {
			run := func(ctx context.Context, _ struct{}) (string, error) {
				if hang {
					<-ctx.Done()
				}
				return "ran", ctx.Err()
			}
			options := []holdfast.ToolOption{
				holdfast.WithEffect(holdfast.EffectOnce),
				holdfast.WithInDoubt(holdfast.DoubtAsk),
			}
			return holdfast.Agent{
				Name: "a",
				Tools: []holdfast.Tool{
					holdfast.NewTool("pay", "pays", run, options...),
					holdfast.NewTool("book", "books", run, options...),
				},
				Model: looptest.Slowly([]holdfast.Delta{
					{Call: &holdfast.CallDelta{Name: "pay", Arguments: "{}"}},
					{
						Call:   &holdfast.CallDelta{Index: 1, Name: "book", Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
				}, []holdfast.Delta{{Text: "done", Finish: holdfast.FinishStop}}),
			}
		}
		one := looptest.Start(t, s, nil, agent(true))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the clock of the test
		s.Dead.Store(true)
		e := looptest.Start(t, s.Store, nil, agent(false))
		time.Sleep(10 * time.Second)
		open := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r2"))
		if len(open) != 2 {
			t.Fatalf("%d questions", len(open))
		}
		in := looptest.Answers("t", "r3", `{"outcome":"happened","result":"HE SAYS"}`, open[0])
		in.Resume = append(in.Resume, looptest.Answers("t", "r3", `{"outcome":"run_again"}`, open[1]).Resume...)
		looptest.Succeeded(t, looptest.Posted(t, e, in))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:HE SAYS", "tool:ran", "assistant:done")
	})
}

// TestIntent: what is about to be done is stored before it is.
func TestIntent(t *testing.T) {
	db := memstore.New()
	key := store.ThreadKey{Tenant: "acme", Thread: "t"}
	pay := holdfast.NewTool("pay", "pays", func(ctx context.Context, args struct {
		N int `json:"n"`
	}) (string, error) {
		call := holdfast.CallFrom(ctx)
		data, err := db.Value(ctx, key, store.KindIntent, call.ID)
		if err != nil {
			return "", err
		}
		var in thread.Intent
		if err := thread.Decode(data, &in); err != nil {
			return "", err
		}
		head, err := db.Head(ctx, key)
		if err != nil || in.Arguments != `{"n":   7}` || in.Key != call.Key || in.Fence != head.Fence ||
			in.Tool != "pay" || in.Format != thread.FormatBefore {
			t.Errorf("the intent is %+v, %v", in, err)
		}
		return "paid", nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	e := looptest.Start(t, db, nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("pay", `{"n":   7}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{pay},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:paid", "assistant:done")
}

// TestQueryAfterLogin: a tool that can only be asked what became of a call once its user has
// logged in has them do so. Then it is asked again; if they will not log in, it is not known.
func TestQueryAfterLogin(t *testing.T) {
	for name, c := range map[string]struct {
		answer agui.ResumeEntry
		fate   holdfast.Fate
		starts int
		result string
	}{
		"done": {agui.ResumeEntry{Status: agui.ResumeResolved, Payload: []byte(`{"continue":true}`)},
			holdfast.FateDone, 0, "paid before"},
		"not done": {agui.ResumeEntry{Status: agui.ResumeResolved, Payload: []byte(`{"continue":true}`)},
			holdfast.FateNotDone, 1, "paid again"},
		"no": {agui.ResumeEntry{Status: agui.ResumeResolved, Payload: []byte(`{"continue":false}`)}, "", 0,
			thread.TextUnknown},
		"cancelled": {agui.ResumeEntry{Status: agui.ResumeCancelled}, "", 0, thread.TextUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				e, j := doubtful(t, holdfast.WithQuery(func(context.Context, holdfast.ToolCall) (holdfast.ToolResult,
					holdfast.Fate, error) {
					if asked++; asked < 3 {
						login := &credential.LoginRequired{URL: "https://login.example/alice"}
						return holdfast.ToolResult{}, holdfast.FateUnknown, fmt.Errorf("ask: %w", login)
					}
					return holdfast.ToolResult{Text: "paid before"}, c.fate, nil
				}))
				events := looptest.Collect(t,
					looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{},
						agui.DialectV1))(t), nil)
				for n := range 2 {
					open := looptest.OpenOf(t, events)
					if len(open) != 1 || open[0].Reason != thread.ReasonLogin || len(j.Take()) > 0 {
						t.Fatalf("asked %+v", open)
					}
					sound(t, e.Store, "t")
					in := looptest.RunInput("t", fmt.Sprint("r", n+2))
					answer := agui.ResumeEntry{Status: agui.ResumeResolved, Payload: []byte(`{"continue":true}`)}
					if n == 1 {
						answer = c.answer
					}
					answer.InterruptID = open[0].ID
					in.Resume = []agui.ResumeEntry{answer}
					events = looptest.Posted(t, e, in)
				}
				looptest.Succeeded(t, events)
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+c.result, "assistant:done")
				if did := j.Take(); len(did) != c.starts {
					t.Errorf("it was started for %q", did)
				}
			})
		})
	}
}
