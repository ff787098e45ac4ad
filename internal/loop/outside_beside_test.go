package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// callsThese is a model that makes these calls at once, each "name arguments", and then
// answers.
func callsThese(calls ...string) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if slices.ContainsFunc(req.Messages, func(m holdfast.Message) bool { return m.Role == holdfast.RoleTool }) {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			for i, call := range calls {
				name, args, _ := strings.Cut(call, " ")
				d := &holdfast.CallDelta{Index: i, ID: fmt.Sprintf("c%d", i), Name: name, Arguments: args}
				if !yield(holdfast.Delta{Call: d}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	})
}

func byKey(e *looptest.Engine, call, result string) (*threads.FinishedCall, error) {
	return e.Owner.Finish(context.Background(),
		owner.OutsideResult{Who: service, Thread: "t", Call: call, Result: json.RawMessage(result)})
}

// TestOutsideAtOnce: the receiver answers before the call is handed out, as a webhook that
// does the work at once, and the run goes on without having ended.
func TestOutsideAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := &postbox{}, memstore.New()
		var e *looptest.Engine
		p.before = func(_ context.Context, call holdfast.OutsideCall) error {
			_, err := finish(e, p.token(), `{"approved":true}`)
			return err
		}
		e = looptest.Start(t, s, withURLs, outsideAgent(finance(p, holdfast.Outside{})))
		events := looptest.Started(t, e, "t")
		if waiting := waitingFor(t, events); len(waiting) > 0 {
			t.Errorf("the run ends with %s", looptest.Show(events))
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
		done := looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		if done.Run != "r1" || len(p.tokens) != 1 {
			t.Errorf("%+v, handed out %d times", done, len(p.tokens))
		}
		sound(t, s, "t")
	})
}

// TestOutsideWhileOthersRun: a result is taken while other calls of the answer run. It is
// saved at once.
func TestOutsideWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := &postbox{}, memstore.New()
		slow := looptest.Tool("slow", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return "slow", ctx.Err()
		})
		a := outsideAgent(finance(p, holdfast.Outside{}), slow)
		a.Model = callsThese("slow {}", `approve {"amount":1}`)
		e := looptest.Start(t, s, withURLs, a)
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(time.Minute)
		done := looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		if done.Run != "r1" {
			t.Errorf("%+v", done)
		}
		synctest.Wait()
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`)
		checkOnce(t, e, p.token(), done)
		time.Sleep(time.Hour)
		settled(t, e, "t")
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`, "tool:slow", "assistant:done")
		sound(t, s, "t")
	})
}

// TestOutsideSeveral: two outside calls, and a call that finishes here. The run goes on when
// the last result has come, whatever comes first.
func TestOutsideSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		ping := looptest.Tool("ping", holdfast.EffectIdempotent, func(context.Context) (string, error) {
			return "pong",
				nil
		})
		a := outsideAgent(finance(nil, holdfast.Outside{ExpiresAfter: time.Hour}), ping)
		a.Model = callsThese(`approve {"amount":1}`, "ping {}", `approve {"amount":2}`)
		e := looptest.Start(t, s, nil, a)
		if waiting := waitingFor(t, looptest.Started(t, e, "t")); len(waiting) != 2 {
			t.Fatalf("it waits for %+v", waiting)
		}
		first := looptest.Must(byKey(e, "c2", `{"approved":false}`))(t)
		if first.Run != "" {
			t.Errorf("a run goes on although a call waits: %+v", first)
		}
		sound(t, s, "t")
		if waiting := waitingFor(t, looptest.Resumed(t, e, "t", "r2")); len(waiting) != 1 || waiting[0].ID != "c0" {
			t.Errorf("it waits for %+v", waiting)
		}
		if again := looptest.Must(byKey(e, "c2", `{"approved":false}`))(t); *again != *first {
			t.Errorf("again it is %+v", again)
		}
		if _, err := byKey(e, "c2", `{"approved":true}`); looptest.Code(err) != codes.CallAlreadyAnswered {
			t.Errorf("another result: %v", err)
		}
		if _, err := byKey(e, "c1", `"pong"`); looptest.Code(err) != codes.NotFound {
			t.Errorf("a call that runs here: %v", err)
		}
		time.Sleep(2 * time.Hour) // the result that has come does not expire
		looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r3"))
		got := looptest.Texts(t, e, "t")
		slices.Sort(got[3:5])
		if want := []string{
			"user:go",
			"assistant:",
			"tool:pong",
			"tool:" + thread.TextExpired,
			`tool:{"approved":false}`,
			"assistant:done",
		}; !slices.Equal(got, want) {
			t.Errorf("the history is %q", got)
		}
		sound(t, s, "t")
	})
}

// TestOutsideBesideFrontend: a frontend's call and an outside one wait for each other,
// whichever is finished first. Only the frontend's is named to the frontend.
func TestOutsideBesideFrontend(t *testing.T) {
	for _, first := range []string{"outside", "frontend", "a message"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				a := outsideAgent(finance(nil, holdfast.Outside{Abandonable: true}))
				a.Model = callsThese(`approve {"amount":1}`, "show {}")
				e := looptest.Start(t, s, nil, a)
				in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
				in.Tools = []agui.Tool{{Name: "show"}}
				events := looptest.Posted(t, e, in)
				if pending := looptest.Succeeded(t, events).Outcome.PendingToolCallIDs; !slices.Equal(pending,
					[]string{"c1"}) || len(waitingFor(t, events)) != 1 {
					t.Fatalf("it ends with %s", looptest.Show(events))
				}
				shown := agui.FromDomain(holdfast.Message{ID: "m1", Role: holdfast.RoleTool, CallID: "c1",
					Text: "shown"})
				want := []string{"user:go", "assistant:", "tool:shown", `tool:{"approved":true}`, "assistant:done"}
				switch first {
				case "outside":
					if done := looptest.Must(byKey(e, "c0", `{"approved":true}`))(t); done.Run != "" {
						t.Errorf("%+v", done)
					}
					sound(t, s, "t")
					looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", shown)))
				case "frontend":
					if waiting := waitingFor(t,
						looptest.Posted(t, e, looptest.RunInput("t", "r2", shown))); len(waiting) != 1 {
						t.Errorf("it waits for %+v", waiting)
					}
					sound(t, s, "t")
					looptest.Must(byKey(e, "c0", `{"approved":true}`))(t)
				case "a message": // what has come is not lost for it
					looptest.Must(byKey(e, "c0", `{"approved":true}`))(t)
					looptest.Succeeded(t,
						looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "well?"))))
					want = []string{
						"user:go",
						"assistant:",
						"tool:" + thread.TextNotAnswered,
						`tool:{"approved":true}`,
						"user:well?",
						"assistant:done",
					}
				}
				settled(t, e, "t")
				looptest.WantTexts(t, e, "t", want...)
				sound(t, s, "t")
			})
		})
	}
}

// TestOutsideBesideQuestion: a person is asked about another call; the answer and the result
// may come in any order, and only the question is shown as one.
func TestOutsideBesideQuestion(t *testing.T) {
	for _, first := range []string{"outside", "person"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				ask := holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
					if a := holdfast.CallFrom(ctx).Answer; a != nil {
						return "answered " + string(a.Payload), nil
					}
					return "", &holdfast.Interrupt{Message: "Well?"}
				})
				a := outsideAgent(finance(nil, holdfast.Outside{}), ask)
				a.Model = callsThese(`approve {"amount":1}`, "ask {}")
				e := looptest.Start(t, s, nil, a)
				open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
				if len(open) != 1 || open[0].ToolCallID != "c1" {
					t.Fatalf("asked %+v", open)
				}
				in := looptest.RunInput("t", "r5", looptest.UserSays("u5", "later"))
				in.ForwardedProps = json.RawMessage(`{"holdfast":{"onInterrupted":"decline"}}`)
				if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
					in); looptest.Code(err) != codes.CallPending {
					t.Errorf("a new message: %v", err)
				}
				want := []string{"user:go", "assistant:", `tool:{"approved":true}`, "tool:answered 1", "assistant:done"}
				if first == "outside" {
					if done := looptest.Must(byKey(e, "c0", `{"approved":true}`))(t); done.Run != "" {
						t.Errorf("%+v", done)
					}
					if again := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r6")); len(again) != 1 {
						t.Errorf("asked %+v", again)
					}
					looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", "1", open...)))
				} else {
					if waiting := waitingFor(t,
						looptest.Posted(t, e, looptest.Answers("t", "r2", "1", open...))); len(waiting) != 1 {
						t.Errorf("it waits for %+v", waiting)
					}
					looptest.Must(byKey(e, "c0", `{"approved":true}`))(t)
				}
				settled(t, e, "t")
				got := looptest.Texts(t, e, "t")
				slices.Sort(got[2:4])
				slices.Sort(want[2:4])
				if !slices.Equal(got, want) {
					t.Errorf("the history is %q", got)
				}
				sound(t, s, "t")
			})
		})
	}
}

// TestOutsideAllowedFirst: a middleware asks whether the call may be handed out. The person
// may change it, which is then what is handed out; a result cannot come before.
func TestOutsideAllowedFirst(t *testing.T) {
	for payload, want := range map[string]string{
		`{"approved":true}`:                              `{"amount":7}`,
		`{"approved":true,"editedArgs":{"amount":3}}`:    `{"amount":3}`,
		`{"approved":false,"reason":"it is not needed"}`: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			var handed string
			p := &postbox{
				before: func(_ context.Context,
					c holdfast.OutsideCall) error {
					handed = string(c.Call.Arguments)
					return nil
				},
			}
			a := outsideAgent(finance(p, holdfast.Outside{}))
			a.Middleware = []holdfast.Middleware{permission.New(permission.Options{Default: permission.Ask})}
			e := looptest.Start(t, memstore.New(), withURLs, a)
			open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
			if _, err := byKey(e, open[0].ToolCallID, `{"approved":true}`); looptest.Code(err) != codes.NotFound ||
				handed != "" {
				t.Errorf("before: %v, handed out %s", err, handed)
			}
			events := looptest.Posted(t, e, looptest.Answers("t", "r2", payload, open...))
			if handed != want {
				t.Errorf("handed out %s, want %s", handed, want)
			}
			if want == "" {
				looptest.Succeeded(t, events)
				return
			}
			waitingFor(t, events)
			looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
			settled(t, e, "t")
			if got := looptest.Texts(t, e, "t"); got[2] != `tool:{"approved":true}` || len(p.tokens) != 1 {
				t.Errorf("the history is %q, handed out %d times", got, len(p.tokens))
			}
		})
	}
}

// TestOutsideNoRoom: while there is no place for a run, a result is still taken, and upkeep
// goes on later.
func TestOutsideNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hang := looptest.Tool("hang", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return "", nil
		})
		busy := holdfast.Agent{
			Name:  "busy",
			Model: looptest.Say(looptest.Calls("hang", "{}"), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{hang},
		}
		s := memstore.New()
		e := looptest.Start(t, s, func(c *looptest.Config) { c.MaxRuns, c.Retention.Every = 1, 10*time.Second },
			outsideAgent(finance(nil, holdfast.Outside{})), busy)
		call := waitingFor(t, looptest.Started(t, e, "t"))[0].ID
		synctest.Wait() // until that run has given its place back
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "busy",
			looptest.RunInput("other", "r1", looptest.UserSays("u1", "go"))))(t)
		done := looptest.Must(byKey(e, call, `{"approved":true}`))(t)
		if done.Run != "" {
			t.Errorf("%+v", done)
		}
		time.Sleep(10 * time.Minute)
		sound(t, s, "t")
		close(release)
		time.Sleep(10 * time.Minute)
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
		if again := looptest.Must(byKey(e, call, `{"approved":true}`))(t); *again != *done {
			t.Errorf("again it is %+v", again)
		}
	})
}

// TestOutsideBesideADescription: a result that a run has not stored yet stays in the inbox,
// whatever else comes there, so that the next owner finds it should this one die.
func TestOutsideBesideADescription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocks, release := make(chan struct{}), make(chan struct{})
		note := holdfast.NewTool("note", "notes", func(ctx context.Context, _ struct{}) (string, error) {
			time.Sleep(time.Second)
			return "noted", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				close(blocks)
				<-release // as a large state does for a moment: the run takes nothing meanwhile
				return json.RawMessage(`{"noted":true}`), nil
			})
		})
		s := memstore.New()
		e := looptest.Start(t, s, nil, holdfast.Agent{
			Name:  "a",
			Model: callsThese(`approve {"amount":7}`, "note {}"),
			Tools: []holdfast.Tool{finance(nil, holdfast.Outside{}), note},
		})
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		<-blocks
		finished := make(chan error, 1)
		go func() {
			_, err := byKey(e, "c0", `{"approved":true}`)
			finished <- err
		}()
		synctest.Wait()
		title := "another title"
		described := make(chan error, 1)
		go func() {
			_, err := (upkeep.Titles{Keeper: e.Keeper}).Describe(t.Context(), looptest.Alice, "t", "",
				threads.Description{Title: &title})
			described <- err
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		if items := looptest.Must(s.Inbox(t.Context(), looptest.KeyOf("t")))(t); !slices.ContainsFunc(items,
			func(i store.InboxItem) bool { return strings.HasPrefix(i.ID, "result/") }) {
			t.Errorf("the inbox has %+v", items)
		}
		close(release)
		if err := errors.Join(<-finished, <-described); err != nil {
			t.Error(err)
		}
		settled(t, e, "t")
		sound(t, s, "t")
		if got := looptest.Texts(t, e, "t"); !slices.Contains(got, `tool:{"approved":true}`) {
			t.Errorf("the history is %q", got)
		}
	})
}
