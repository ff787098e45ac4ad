package loop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// handsOut starts a thread "t" that waits for an outside call.
func handsOut(
	t *testing.T, o holdfast.Outside, change func(*looptest.Config), options ...holdfast.ToolOption,
) (*looptest.Engine, *postbox, string) {
	t.Helper()
	p := &postbox{}
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
		withURLs(c)
		if change != nil {
			change(c)
		}
	}, outsideAgent(finance(p, o, options...)))
	return e, p, waitingFor(t, looptest.Started(t, e, "t"))[0].ID
}

// TestOutsideCancel: cancelling a run that waits changes nothing, as for every run that has
// ended; cancelling one while it hands a call out gives the call up.
func TestOutsideCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, _ := handsOut(t, holdfast.Outside{}, nil)
		if info := looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t",
			"r1"))(t); len(info.OutsideCalls) != 1 {
			t.Errorf("cancelled, it waits no more: %+v", info)
		}
		looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		settled(t, e, "t")
	})
	synctest.Test(t, func(t *testing.T) {
		p := &postbox{
			before: func(ctx context.Context, _ holdfast.OutsideCall) error { <-ctx.Done(); return ctx.Err() },
		}
		e := looptest.Start(t, memstore.New(), withURLs, outsideAgent(finance(p, holdfast.Outside{})))
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		synctest.Wait()
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		settled(t, e, "t")
		if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.CallClosed {
			t.Errorf("a result after the cancel: %v", err)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+thread.TextCancelled)
	})
}

// TestOutsideDelete: a deleted thread finishes nothing, and neither does one that has its
// name afterwards.
func TestOutsideDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, _ := handsOut(t, holdfast.Outside{}, nil)
		old := p.token()
		if n, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for range 2 {
			if _, err := finish(e, old, `{"approved":true}`); looptest.Code(err) != codes.NotFound {
				t.Errorf("after the DELETE: %v", err)
			}
			waitingFor(t, looptest.Started(t, e, "t"))
		}
		looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		settled(t, e, "t")
	})
}

// TestOutsideFork: a fork of a thread that waits has no URL of the call. It hands the call
// out itself once it goes on; the other thread does not notice.
func TestOutsideFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, call := handsOut(t, holdfast.Outside{}, nil)
		forked := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Thread: "f"}))(t)
		if forked.Thread.Status != threads.StatusStopped || len(forked.Thread.OutsideCalls) > 0 {
			t.Errorf("the fork is %+v", forked.Thread)
		}
		sound(t, e.Store, "f")
		waitingFor(t, looptest.Resumed(t, e, "f", "r2"))
		if len(p.tokens) != 2 || p.tokens[0] == p.tokens[1] || p.keys[0] != p.keys[1] {
			t.Errorf("handed out as %q with the keys %q", p.tokens, p.keys)
		}
		looptest.Must(finish(e, p.tokens[1], `{"approved":false}`))(t)
		settled(t, e, "f")
		if info := settled(t, e, "t"); len(info.OutsideCalls) != 1 || info.OutsideCalls[0].ID != call {
			t.Errorf("the first thread is %+v", info)
		}
		looptest.Must(finish(e, p.tokens[0], `{"approved":true}`))(t)
		settled(t, e, "t")
		for id, result := range map[string]string{"t": "true", "f": "false"} {
			looptest.WantTexts(t, e, id, "user:go", "assistant:", `tool:{"approved":`+result+`}`, "assistant:done")
			sound(t, e.Store, id)
		}
	})
}

// TestOutsideRewind: going back to before a call gives it up and says what it may have done;
// going back to where it waited hands it out again, or tells the model what has happened.
func TestOutsideRewind(t *testing.T) {
	waitingAt := func(t *testing.T, e *looptest.Engine) string {
		all := looptest.Checkpoints(t, e, "t")
		return all[slices.IndexFunc(all, func(c threads.Checkpoint) bool { return c.Metadata.Source == "loop" })].ID
	}
	t.Run("before it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, p, call := handsOut(t, holdfast.Outside{}, nil)
			back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
			if len(back.Effects) != 1 || back.Effects[0].CallID != call || back.Effects[0].Effect != "once" {
				t.Errorf("what has happened: %+v", back.Effects)
			}
			sound(t, e.Store, "t")
			if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.CallClosed {
				t.Errorf("a result afterwards: %v", err)
			}
			waitingFor(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again"))))
			looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
			settled(t, e, "t")
			sound(t, e.Store, "t")
		})
	})
	t.Run("while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, p, _ := handsOut(t, holdfast.Outside{}, nil)
			back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
				threads.Travel{Checkpoint: waitingAt(t, e)}))(t)
			if back.Thread.Status != threads.StatusStopped || len(back.Effects) != 0 {
				t.Errorf("back there: %+v", back)
			}
			if _, err := finish(e, p.tokens[0], `{"approved":true}`); looptest.Code(err) != codes.NotFound {
				t.Errorf("by the old URL: %v", err)
			}
			waitingFor(t, looptest.Resumed(t, e, "t", "r2"))
			looptest.Must(finish(e, p.tokens[1], `{"approved":true}`))(t)
			settled(t, e, "t")
			sound(t, e.Store, "t")
		})
	})
	for name, c := range map[string]struct {
		travel  threads.Travel
		effect  holdfast.Effect
		result  string
		handed  int
		another bool
	}{
		"once, when it was finished": {effect: holdfast.EffectOnce, handed: 1,
			result: "Not started: this call was carried out before"},
		"once, with its result": {effect: holdfast.EffectOnce, handed: 1,
			travel: threads.Travel{ReuseResults: true}, result: `{"approved":true}`},
		"idempotent, when it was finished": {effect: holdfast.EffectIdempotent, handed: 2,
			result: `{"approved":false}`, another: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, p, _ := handsOut(t, holdfast.Outside{}, nil, holdfast.WithEffect(c.effect))
				at := waitingAt(t, e)
				looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
				settled(t, e, "t")
				c.travel.Checkpoint = at
				if back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
					c.travel))(t); len(back.Effects) != 1 {
					t.Errorf("what has happened: %+v", back.Effects)
				}
				sound(t, e.Store, "t")
				looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r3"))
				if c.another {
					looptest.Must(finish(e, p.token(), `{"approved":false}`))(t)
					settled(t, e, "t")
				}
				if got := looptest.Texts(t, e, "t"); len(got) != 4 || !strings.HasPrefix(got[2], "tool:"+c.result) ||
					len(p.tokens) != c.handed {
					t.Errorf("the history is %q, handed out %d times", got, len(p.tokens))
				}
				sound(t, e.Store, "t")
			})
		})
	}
}

// TestOutsideEdited: a chat in which the message before the call is edited is refused like a
// new message, unless the call may be given up. Then what has come since is on the branch
// that was left.
func TestOutsideEdited(t *testing.T) {
	for _, abandonable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, p, _ := handsOut(t, holdfast.Outside{Abandonable: abandonable}, nil)
			in := looptest.RunInput("t", "r2", looptest.UserSays("u9", "go elsewhere"))
			in.ForwardedProps = []byte(`{"holdfast":{"chat":true,"whole":true}}`)
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
			if !abandonable {
				if looptest.Code(err) != codes.CallPending {
					t.Errorf("edited: %v", err)
				}
				return
			}
			// The first request stands, so a person is asked before there is another one.
			open := looptest.OpenOf(t, looptest.Collect(t, reply, err))
			waitingFor(t, looptest.Posted(t, e, looptest.Answers("t", "r3", `{"approved":true}`, open...)))
			if len(p.tokens) != 2 {
				t.Errorf("handed out %d times", len(p.tokens))
			}
			if _, err := finish(e, p.tokens[0], `{"approved":true}`); looptest.Code(err) != codes.CallClosed {
				t.Errorf("by the old URL: %v", err)
			}
			looptest.Must(finish(e, p.tokens[1], `{"approved":true}`))(t)
			settled(t, e, "t")
			looptest.WantTexts(t, e, "t", "user:go elsewhere", "assistant:", `tool:{"approved":true}`, "assistant:done")
			sound(t, e.Store, "t")
		})
	}
}

// TestOutsideEditedAfterAnError: an error that has come stays one on the branch that was left,
// and where its call is made again.
func TestOutsideEditedAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := outsideAgent(finance(nil, holdfast.Outside{Abandonable: true}))
		a.Model = callsThese(`approve {"amount":1}`, `approve {"amount":2}`)
		e := looptest.Start(t, memstore.New(), nil, a)
		waitingFor(t, looptest.Started(t, e, "t"))
		looptest.Must(e.Owner.Finish(t.Context(),
			owner.OutsideResult{Who: service, Thread: "t", Call: "c0", Result: []byte(`"closed today"`),
				Failed: true}))(t)
		in := looptest.RunInput("t", "r2", looptest.UserSays("u9", "go elsewhere"))
		in.ForwardedProps = []byte(`{"holdfast":{"chat":true,"whole":true}}`)
		looptest.OpenOf(t, looptest.Posted(t, e, in))
		stored := looptest.Must(e.Store.Messages(t.Context(), looptest.KeyOf("t")))(t)
		failed := 0
		for i := range stored {
			m := looptest.Must(agui.DecodeMessage(stored[i].Data))(t)
			if thread.TextOf(m.Content) != "closed today" {
				continue
			}
			if failed++; !thread.MarkOf(&m).Failed {
				t.Errorf("no error: %s", stored[i].Data)
			}
		}
		if failed != 2 {
			t.Errorf("%d results", failed)
		}
		sound(t, e.Store, "t")
	})
}

// hides returns a Tool hook that takes a secret out of what tools return, as redaction does.
// While slow is set, it only waits.
func hides(slow *atomic.Bool) holdfast.Middleware {
	return holdfast.Middleware{Name: "hides", Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
		return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			result, err := next(ctx, tool, call)
			if call.Finished && slow.Load() {
				<-ctx.Done()
				return holdfast.ToolResult{}, ctx.Err()
			}
			if call.Finished && (holdfast.IterationFrom(ctx).Thread != "t" || string(call.Arguments) == "") {
				return result, errors.New("a hook does not know where it is")
			}
			result.Text = strings.ReplaceAll(result.Text, "4711", "hidden")
			return result, err
		}
	}}
}

// TestOutsideEditedPassesHooks: what has come for a call that is left behind before a run could
// take it passes the Tool hooks like any other result, on each branch. So it does when the run
// that was to take it is cancelled.
func TestOutsideEditedPassesHooks(t *testing.T) {
	for how, leave := range map[string]func(t *testing.T, e *looptest.Engine, slow *atomic.Bool){
		"edited": func(t *testing.T, e *looptest.Engine, _ *atomic.Bool) {
			in := looptest.RunInput("t", "r2", looptest.UserSays("u9", "go elsewhere"))
			in.ForwardedProps = []byte(`{"holdfast":{"chat":true,"whole":true}}`)
			looptest.OpenOf(t, looptest.Posted(t, e, in))
		},
		"cancelled": func(t *testing.T, e *looptest.Engine, slow *atomic.Bool) {
			slow.Store(true)
			run := looptest.Must(byKey(e, "c1", `"no code"`))(t).Run
			synctest.Wait()
			slow.Store(false)
			looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", run))(t)
			settled(t, e, "t")
		},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := outsideAgent(finance(nil, holdfast.Outside{Abandonable: true, Result: []byte(`{}`)}))
				a.Model = callsThese(`approve {"amount":1}`, `approve {"amount":2}`)
				var slow atomic.Bool
				a.Middleware = []holdfast.Middleware{hides(&slow)}
				e := looptest.Start(t, memstore.New(), nil, a)
				waitingFor(t, looptest.Started(t, e, "t"))
				looptest.Must(byKey(e, "c0", `"the code is 4711"`))(t)
				leave(t, e, &slow)
				stored, key := "", looptest.KeyOf("t")
				for _, m := range looptest.Must(e.Store.Messages(t.Context(), key))(t) {
					stored += string(m.Data) + "\n"
				}
				for _, r := range looptest.Must(e.Store.Records(t.Context(), key, cursor0, 1000))(t) {
					stored += string(r.Data) + "\n"
				}
				for _, v := range looptest.Must(e.Store.Values(t.Context(), key, store.KindReuse, "", 0))(t) {
					stored += string(v.Data) + "\n"
				}
				if strings.Contains(stored, "4711") || !strings.Contains(stored, "the code is hidden") {
					t.Errorf("stored is\n%s", stored)
				}
				sound(t, e.Store, "t")
			})
		})
	}
}

// TestOutsideKept: retention and clean-ups leave a thread that waits alone; pruning keeps how
// calls ended that are still in the history.
func TestOutsideKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, call := handsOut(t, holdfast.Outside{}, func(c *looptest.Config) {
			c.Retention.Every, c.Retention.Threads = 10*time.Second, time.Hour
		})
		time.Sleep(24 * time.Hour)
		if cleaned := looptest.Must(e.Keeper.DeleteInactive(t.Context(), looptest.Alice, time.Now(),
			false))(t); cleaned.Threads != 0 {
			t.Errorf("removed: %+v", cleaned)
		}
		first := looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		settled(t, e, "t")
		looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
		if again := looptest.Must(finish(e, p.token(), `{"approved":true}`))(t); *again != *first {
			t.Errorf("after a prune: %+v", again)
		}
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
		looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
		if left := looptest.Must(e.Store.Values(t.Context(), looptest.KeyOf("t"), store.KindOutside, "",
			0))(t); len(left) > 0 {
			t.Errorf("the end of %s is kept: %s", call, left[0].Data)
		}
		time.Sleep(24 * time.Hour)
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t"); looptest.Code(err) != codes.NotFound {
			t.Errorf("a thread that waits no more is kept: %v", err)
		}
	})
}

// TestOutsideForgotten: retention removes a thread whose call has expired and whose agent is
// gone: nobody will ever go on with it.
func TestOutsideForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := handsOut(t, holdfast.Outside{ExpiresAfter: time.Hour}, nil)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := outsideAgent()
		other.Name = "b"
		e = looptest.Start(t, e.Store, func(c *looptest.Config) {
			c.Retention.Every, c.Retention.Threads = 10*time.Second, 2*time.Hour
		}, other)
		time.Sleep(90 * time.Minute)
		looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
		time.Sleep(90 * time.Minute)
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t"); looptest.Code(err) != codes.NotFound {
			t.Errorf("it is kept: %v", err)
		}
	})
}
