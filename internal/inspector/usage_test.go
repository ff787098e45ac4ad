package inspector_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// counted is what a model says that it has used.
func counted(n int64) *holdfast.Usage {
	return &holdfast.Usage{Provider: "acme", Model: "large", InputTokens: &n}
}

// tokens returns the input tokens of usage, and how many models there are.
func tokens(usage []threads.Usage) string {
	sum := int64(0)
	for _, u := range usage {
		sum += *u.InputTokens
	}
	return fmt.Sprint(sum, " of ", len(usage))
}

// TestUsage: a run says what it has used, while it is under way and afterwards; a thread what
// its own runs have used together.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		wait := looptest.Tool("wait", holdfast.EffectIdempotent, func(context.Context) (string, error) {
			<-gate
			return "", nil
		})
		first := looptest.Calls("wait", "{}")
		first.Usage = counted(3)
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(first, holdfast.Delta{Text: "done", Usage: counted(4)}),
			Tools: []holdfast.Tool{wait},
		})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		run := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)[0]
		if tokens(run.Usage) != "3 of 1" || run.Records == 0 {
			t.Errorf("while it runs: %+v", run)
		}
		close(gate)
		frames, _ := looptest.FramesOf(t, reply, nil)
		if run = looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "",
			0))(t)[0]; tokens(run.Usage) != "7 of 1" || run.Records != uint64(len(frames)) {
			t.Errorf("afterwards: %d records, %+v", len(frames), run)
		}
		looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again")))
		fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread.ID
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
		if all := looptest.Must(of(e).Usage(t.Context(), looptest.Alice, "t"))(t); all.Runs != 2 ||
			tokens(all.Usage) != "11 of 1" || all.Incomplete {
			t.Errorf("the thread: %+v", all)
		}
		if all := looptest.Must(of(e).Usage(t.Context(), looptest.Alice, fork))(t); all.Runs != 0 ||
			len(all.Usage) != 0 {
			t.Errorf("a fork: %+v", all)
		}
		looptest.Posted(t, e, looptest.RunInput(fork, "r3", looptest.UserSays("u3", "more")))
		if all := looptest.Must(of(e).Usage(t.Context(), looptest.Alice, fork))(t); all.Runs != 1 ||
			tokens(all.Usage) != "4 of 1" {
			t.Errorf("a fork with a run: %+v", all)
		}
		if _, err := of(e).Usage(t.Context(), bob, "t"); looptest.Code(err) != codes.NotFound {
			t.Errorf("somebody else: %v", err)
		}
	})
}

// TestUsageOfEarlyVersions: where a run has stored nothing, the sum says so.
func TestUsageOfEarlyVersions(t *testing.T) {
	in := inspector.New(inspector.Config{
		Store: store.Store(nil),
		Price: free,
		Runs: func(context.Context, holdfast.Principal, string, string, int) ([]threads.Run, error) {
			return []threads.Run{{ID: "r", Records: 3}}, nil
		},
	})
	if all := looptest.Must(in.Usage(t.Context(), looptest.Alice, "t"))(t); !all.Incomplete || all.Runs != 1 {
		t.Errorf("%+v", all)
	}
}
