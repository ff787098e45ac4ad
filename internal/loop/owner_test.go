package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// TestStreamsNameTheOwner: whichever server a stream comes from, and however it begins, it names the
// process that runs the thread, also after a takeover; and none once the run has ended.
func TestStreamsNameTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, key := memstore.New(), looptest.KeyOf("t")
		nap := looptest.Tool("nap", holdfast.EffectPure, func(context.Context) (string, error) {
			time.Sleep(time.Minute)
			return "rested", nil
		})
		agent := func() holdfast.Agent {
			model := looptest.Say(looptest.Calls("nap", "{}"), holdfast.Delta{Text: "done"})
			return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{nap}}
		}
		other, owner := looptest.Start(t, shared, nil, agent()), looptest.Start(t, shared, nil, agent())
		post := func(e *looptest.Engine) (*agui.Reply, error) {
			return e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		}
		first := looptest.Must(post(owner))(t)
		synctest.Wait()
		process := looptest.Must(shared.Head(t.Context(), key))(t).Process
		if first.Owner != process {
			t.Errorf("the first stream names %q, want %q", first.Owner, process)
		}
		seen := looptest.Must(shared.Records(t.Context(), key, store.Cursor{}, 1))(t)[0].Cursor
		want := func(process string) {
			t.Helper()
			for _, e := range []*looptest.Engine{owner, other} {
				for name, reply := range map[string]*agui.Reply{
					"the POST again": looptest.Must(post(e))(t),
					"attaching": looptest.Must(e.Owner.Attach(t.Context(), looptest.Alice, "t",
						agui.DialectV1))(t),
					"coming back": looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", seen,
						agui.DialectV1))(t),
				} {
					if reply.Owner != process {
						t.Errorf("%s: the stream names %q, want %q", name, reply.Owner, process)
					}
				}
				if info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t); info.Owner != process {
					t.Errorf("the thread names %q, want %q", info.Owner, process)
				}
			}
		}
		want(process)
		go func() { _ = owner.Owner.Shutdown(context.Background()) }()
		takenOverAfter(t, shared, key, 1, time.Now())
		synctest.Wait()
		owner = other // the one before answers no more
		process = looptest.Must(shared.Head(t.Context(), key))(t).Process
		want(process)
		time.Sleep(time.Minute + time.Second)
		want("")
	})
}
