package audit

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// TestInspectInTheMiddle: what is under way can be seen from the store alone.
func TestInspectInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		quick := looptest.Tool("quick", holdfast.EffectOnce, func(context.Context) (string, error) {
			return "done",
				nil
		})
		hang := looptest.Tool("hang", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		ask := looptest.Tool("ask", holdfast.EffectOnce, func(context.Context) (string, error) {
			return "",
				&holdfast.Interrupt{Message: "well?"}
		})
		model := looptest.Slowly([]holdfast.Delta{
			{
				Call: &holdfast.CallDelta{Index: 0, ID: "c1", Name: "quick", Arguments: "{}"},
			},
			{Call: &holdfast.CallDelta{Index: 1, ID: "c2", Name: "hang", Arguments: "{}"}},
			{
				Call: &holdfast.CallDelta{Index: 2, ID: "c3", Name: "ask", Arguments: "{}"},
			},
			{Finish: holdfast.FinishToolCalls},
		})
		e := looptest.Start(t, store, nil,
			holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{quick, hang, ask}})
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		looptest.WaitFor(t, func() bool {
			in := looptest.Must(Inspect(t.Context(), store, looptest.KeyOf("t"), ""))(t)
			return len(in.Pending) == 1 && len(in.Intents) == 2
		})
		in := looptest.Must(Inspect(t.Context(), store, looptest.KeyOf("t"), ""))(t)
		if in.Status != "running" || in.Owner == "" || in.Agent != "a" || in.Run != "r1" || in.User != "alice" ||
			len(in.Problems) != 0 {
			t.Errorf("%+v", in)
		}
		if len(in.Open) != 2 || in.Open[0].ID != "c2" || in.Open[1].Interrupt == "" {
			t.Errorf("open are %+v", in.Open)
		}
		if p := in.Pending[0]; p.CallID != "c1" || p.Tool != "quick" || p.Message != in.History[2].ID {
			t.Errorf("pending is %+v", in.Pending)
		}
		if len(in.Runs) != 1 || in.Runs[0].Outcome != "" || len(in.History[1].Calls) != 3 ||
			in.History[2].Text != "done" || in.History[2].CallID != "c1" {
			t.Errorf("%+v %+v", in.Runs, in.History)
		}
	})
}

// TestInspectADamagedThread: what can be read is shown, and what is wrong is said.
func TestInspectADamagedThread(t *testing.T) {
	for name, c := range map[string]struct {
		do       damage
		status   string
		messages int
	}{
		"a negative counter": {changeState(func(st *thread.State) { st.Iteration = -1 }), "unreadable", 6},
		"no head": {func(_ *testing.T, _ *everything, c *store.Commit) { c.State = []byte("{") },
			"unreadable", 0},
		"a newer version": {changeState(func(st *thread.State) { st.Format = thread.Format + 1 }), "unreadable", 0},
		"a hole":          {forget(2), "idle", 3},
	} {
		t.Run(name, func(t *testing.T) {
			store, e := finishedThread(t)
			if problems := spoiled(t, e, store, "t", c.do); len(problems) == 0 {
				t.Fatal("no problem was found")
			}
			in := looptest.Must(Inspect(t.Context(), store, looptest.KeyOf("t"), ""))(t)
			if in.Status != c.status || len(in.History) != c.messages || len(in.Problems) == 0 ||
				len(in.Checkpoints) != 4 || in.Size["checkpoint"] == 0 {
				t.Errorf("%+v", in)
			}
		})
	}
}

// TestInspectACheckpoint shows the history as it was.
func TestInspectACheckpoint(t *testing.T) {
	store, e := finishedThread(t)
	all := looptest.Checkpoints(t, e, "t")
	in := looptest.Must(Inspect(t.Context(), store, looptest.KeyOf("t"), all[1].ID))(t)
	if in.Shown == nil || in.Shown.ID != all[1].ID || len(in.History) != 3 || string(in.State) != `{"last":"look"}` ||
		in.Status != "idle" {
		t.Errorf("%+v", in)
	}
	if _, err := Inspect(t.Context(), store, looptest.KeyOf("t"), "9"); looptest.Code(err) != codes.NotFound ||
		!strings.Contains(err.Error(), `"9"`) {
		t.Errorf("an unknown checkpoint: %v", err)
	}
}
