package loop_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// A call that has kept something was begun, also while it waits for a person: whichever way a
// thread leaves it, it is not begun a second time by itself.

// starter is an agent whose tool starts work elsewhere, keeps that, and asks a person.
func starter(j *looptest.Notebook) holdfast.Agent {
	a := spender(j)
	a.Tools = []holdfast.Tool{holdfast.NewTool("pay", "pays", func(ctx context.Context, _ struct {
		N int `json:"n"`
	}) (string, error) {
		call := holdfast.CallFrom(ctx)
		if call.Kept == nil {
			j.Note("began")
			if err := holdfast.Keep(ctx, json.RawMessage(`7`)); err != nil {
				return "", err
			}
		}
		if call.Answer == nil {
			return "", &holdfast.Interrupt{Reason: holdfast.ReasonToolCall, Message: "Go on?"}
		}
		return "paid by " + string(call.Kept), nil
	}, holdfast.WithEffect(holdfast.EffectOnce))}
	return a
}

func TestKeptAndLeft(t *testing.T) {
	pay := looptest.UserSays("u1", "pay 1")
	declined := func(t *testing.T, e *looptest.Engine, open []agui.Interrupt) {
		in := looptest.Answers("t", "r2", ``, open...)
		in.Resume[0].Status, in.Resume[0].Payload = agui.ResumeCancelled, nil
		looptest.Succeeded(t, looptest.Posted(t, e, in))
	}
	answered := func(t *testing.T, e *looptest.Engine, open []agui.Interrupt) {
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r9", `{"approved":true}`, open...)))
		if got := looptest.Texts(t, e, "t"); got[2] != "tool:paid by 7" {
			t.Errorf("the history is %q", got)
		}
	}
	back := func(t *testing.T, e *looptest.Engine) {
		all := looptest.Checkpoints(t, e, "t")
		at := all[slices.IndexFunc(all, func(c threads.Checkpoint) bool { return c.Metadata.Source == "loop" })].ID
		if back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
			threads.Travel{Checkpoint: at}))(t); len(back.Effects) != 1 {
			t.Errorf("what has happened: %+v", back.Effects)
		}
		open := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r3"))
		if open[0].Message != "Go on?" {
			t.Errorf("asked %q", open[0].Message)
		}
		answered(t, e, open)
	}
	for name, leave := range map[string]func(t *testing.T, e *looptest.Engine, open []agui.Interrupt){
		"edited": func(t *testing.T, e *looptest.Engine, _ []agui.Interrupt) {
			looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u1", "pay 2"))))
		},
		"declined and regenerated": func(t *testing.T, e *looptest.Engine, open []agui.Interrupt) {
			declined(t, e, open)
			looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", pay)))
		},
		"rewound": func(t *testing.T, e *looptest.Engine, _ []agui.Interrupt) { back(t, e) },
		"declined and rewound": func(t *testing.T, e *looptest.Engine, open []agui.Interrupt) {
			declined(t, e, open)
			back(t, e)
		},
		"answered": answered,
		"its tool is gone": func(t *testing.T, e *looptest.Engine, open []agui.Interrupt) {
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			without := starter(&looptest.Notebook{})
			without.Tools = nil
			e = looptest.Start(t, e.Store, nil, without)
			looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", `{"approved":true}`, open...)))
			if got := looptest.Texts(t, e, "t"); got[2] != "tool:"+thread.TextInDoubt {
				t.Errorf("the history is %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &looptest.Notebook{}
				e := looptest.Start(t, memstore.New(), nil, starter(j))
				leave(t, e, looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", pay))))
				if did := j.Take(); len(did) != 1 {
					t.Errorf("the work was begun %d times", len(did))
				}
				sound(t, e.Store, "t")
			})
		})
	}
}

// TestKeptAndCancelled: a cancel of the run beside the question tells the same.
func TestKeptAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		a := starter(j)
		a.Model = callsThese(`pay {"n":1}`, "slow {}")
		a.Tools = append(a.Tools, looptest.Tool("slow", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		e := looptest.Start(t, memstore.New(), nil, a)
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 1"))))(t)
		time.Sleep(time.Minute)
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		settled(t, e, "t")
		for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t) {
			if m := looptest.Must(agui.DecodeMessage(raw))(t); m.ToolCallID == "c0" && thread.MarkOf(&m).NotRun {
				t.Errorf("it is not said that it was begun: %s", raw)
			}
		}
	})
}

// TestKeptAndEdited: a person who changes the arguments has another call made.
func TestKeptAndEdited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		e := looptest.Start(t, memstore.New(), nil, starter(j))
		open := looptest.OpenOf(t, looptest.Posted(t, e,
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 1"))))
		looptest.Succeeded(t, looptest.Posted(t, e,
			looptest.Answers("t", "r2", `{"approved":true,"editedArgs":{"n":2}}`, open...)))
		if did := j.Take(); len(did) != 2 {
			t.Errorf("the work was begun %d times", len(did))
		}
		if got := looptest.Texts(t, e, "t"); !strings.HasPrefix(got[2], "tool:paid by") {
			t.Errorf("the history is %q", got)
		}
	})
}
