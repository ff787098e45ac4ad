package upkeep_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestPreview: a preview says what going back would do and changes nothing; what follows it
// with its ETag does just that.
func TestPreview(t *testing.T) {
	for name, where := range map[string]string{"a rewind": "t", "a fork": "f"} {
		t.Run(name, func(t *testing.T) {
			e, _ := looptest.Travelled(t)
			do := func(to threads.Travel) (*threads.Traveled, error) {
				if where == "t" {
					return e.Keeper.Rewind(t.Context(), looptest.Alice, "t", to)
				}
				return e.Keeper.Fork(t.Context(), looptest.Alice, "t", to)
			}
			before := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
			list := looptest.Checkpoints(t, e, "t")
			to := threads.Travel{Checkpoint: list[1].ID, Thread: "f", Preview: true}
			shown := looptest.Must(do(to))(t)
			if !shown.Preview || shown.Thread.ETag != before.ETag || shown.Checkpoint.ETag != "" ||
				len(shown.Effects) != 1 || !shown.Effects[0].Reusable {
				t.Errorf("%+v", shown)
			}
			if now := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t); now.ETag != before.ETag ||
				now.Status != before.Status || len(looptest.Checkpoints(t, e, "t")) != len(list) {
				t.Errorf("the thread has moved: %+v", now)
			}
			if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "f"); looptest.Code(err) != codes.NotFound {
				t.Errorf("there is a fork: %v", err)
			}
			looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
			to.Preview, to.ETag = false, shown.Thread.ETag
			done := looptest.Must(do(to))(t)
			if done.Preview || done.Thread.Status != shown.Thread.Status || done.Thread.ID != shown.Thread.ID ||
				done.Checkpoint.ID != shown.Checkpoint.ID ||
				!slices.EqualFunc(done.Effects, shown.Effects, func(a, b threads.PastEffect) bool {
					return a.CallID == b.CallID && a.Effect == b.Effect
				}) {
				t.Errorf("shown was %+v, done %+v", shown, done)
			}
			if where == "t" {
				if _, err := do(to); looptest.Code(err) != codes.CheckpointConflict {
					t.Errorf("once more: %v", err)
				}
			}
		})
	}
}

// TestReuseSome: of the calls since then, those that are named get their recorded results, and
// the others run again.
func TestReuseSome(t *testing.T) {
	for chosen, again := range map[string]string{"charge": "look", "look": "charge", "look charge": "",
		"": "look charge"} {
		t.Run(chosen, func(t *testing.T) {
			e, j := looptest.Travelled(t)
			to := threads.Travel{Message: "u1", Preview: true}
			reuse := []string{}
			ids := map[string]string{}
			path := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t",
				looptest.Checkpoints(t, e, "t")[3].ID))(t)
			for _, raw := range path.History {
				if m := looptest.Must(agui.DecodeMessage(raw))(t); m.ToolCallID != "" {
					tool, _, _ := strings.Cut(thread.TextOf(m.Content), " ")
					ids[tool] = m.ToolCallID
				}
			}
			for _, tool := range strings.Fields(chosen) {
				reuse = append(reuse, ids[tool])
			}
			to.Reuse = reuse
			looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", to))(t)
			to.Preview = false
			looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", to))(t)
			looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
			looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
			var did []string
			for _, d := range j.Take() {
				tool, _, _ := strings.Cut(d, " ")
				did = append(did, tool)
			}
			if got := strings.Join(did, " "); got != again {
				t.Errorf("%q ran again, want %q", got, again)
			}
			if state := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice,
				"t"))(t); string(state.State) != `{"last":"charge"}` {
				t.Errorf("the state is %s", state.State)
			}
		})
	}
}

// TestReuseRefused: only what can be used again can be chosen.
func TestReuseRefused(t *testing.T) {
	e, _ := looptest.Travelled(t)
	for what, to := range map[string]threads.Travel{
		"an unknown call":  {Message: "u1", Reuse: []string{"nope"}},
		"all and some":     {Message: "u1", Reuse: []string{}, ReuseResults: true},
		"a preview of one": {Message: "u1", Reuse: []string{"nope"}, Preview: true},
	} {
		if _, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", to); looptest.Code(err) != codes.InvalidInput {
			t.Errorf("%s: %v", what, err)
		}
	}
	looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
}
