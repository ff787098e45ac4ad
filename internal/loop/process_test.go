package loop_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// TestWhoRanWhat: after a takeover, the log and the run say which process was there before and
// which goes on, how long nobody wrote, and how often a call was started.
func TestWhoRanWhat(t *testing.T) {
	for effect, attempts := range map[holdfast.Effect]int{holdfast.EffectIdempotent: 2, holdfast.EffectOnce: 0} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := doubtful(t, holdfast.WithEffect(effect))
				run := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)[0]
				if len(run.Processes) != 2 || run.Processes[0].Epoch != 1 || run.Processes[1].Epoch != 2 ||
					run.Processes[0].Process == run.Processes[1].Process {
					t.Fatalf("the run was in %+v", run.Processes)
				}
				first, second := run.Processes[0], run.Processes[1]
				if !first.Since.Equal(run.StartedAt) || !second.Since.After(first.Since) {
					t.Errorf("%+v", run.Processes)
				}
				reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
				frames, events := looptest.FramesOf(t, reply, err)
				if start := events[0].(agui.RunStarted); string(start.Metadata) != `{"holdfast":{"process":"`+
					first.Process+`"}}` {
					t.Errorf("RUN_STARTED says %s", start.Metadata)
				}
				takenOver := false
				for i, ev := range events {
					want := first
					switch ev := ev.(type) {
					case agui.Custom:
						takenOver = true
						for _, part := range []string{`"from":"` + first.Process + `"`, `"process":"` +
							second.Process + `"`, `"outageMs":`, `"reason":"owner_gone"`} {
							if !strings.Contains(string(ev.Value), part) {
								t.Errorf("%s does not have %s", ev.Value, part)
							}
						}
						if strings.Contains(string(ev.Value), `"outageMs":0`) {
							t.Errorf("no time has passed: %s", ev.Value)
						}
					case agui.ToolCallResult:
						said := looptest.Must(agui.DecodeMessage(looptest.Must(e.Messages(t.Context(), looptest.Alice,
							"t"))(t)[2]))(t)
						if said.ID != ev.MessageID || string(said.Metadata) != string(ev.Metadata) {
							t.Errorf("message %s says %s; its event for %s says %s", said.ID, said.Metadata,
								ev.MessageID, ev.Metadata)
						}
						if facts, _ := thread.FactsOf(&ev); facts.Attempts != attempts || facts.Key != "" {
							t.Errorf("the result says %s, want %d attempts", ev.Metadata, attempts)
						}
					}
					if takenOver {
						want = second
					}
					if !strings.HasSuffix(frames[i].ID, "-"+want.Tag) {
						t.Errorf("%s of %s is not one of %+v", frames[i].ID, agui.EventType(ev), want)
					}
				}
				if !takenOver {
					t.Error("nobody has taken over")
				}
			})
		})
	}
}
