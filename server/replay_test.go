package server_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// threeSteps is an agent that counts three times, one after another, and then answers.
// The first step is numbered first; -1 makes the model wait after the third.
func threeSteps(ran *atomic.Int32, fail *atomic.Bool, first *atomic.Int32) holdfast.Agent {
	step := holdfast.NewTool("step", "steps", func(_ context.Context, args struct {
		N int `json:"n"`
	}) (string, error) {
		ran.Add(1)
		return fmt.Sprint("step ", args.N), nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			n := 0
			for _, m := range req.Messages {
				n += len(m.Calls)
			}
			switch {
			case fail.Load() && n == 2:
				yield(holdfast.Delta{}, errors.New("no more"))
			case first.Load() > 1 && n == 0:
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: "step", Arguments: fmt.Sprintf(`{"n":%d}`, first.Load())},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			case first.Load() < 0 && n == 3:
				<-ctx.Done()
				yield(holdfast.Delta{}, ctx.Err())
			case n < 3:
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: "step", Arguments: fmt.Sprintf(`{"n":%d}`, n+1)},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			default:
				yield(holdfast.Delta{Text: "all done", Finish: holdfast.FinishStop}, nil)
			}
		}
	})
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{step}}
}

// replaying is a server with a thread "t" of three steps.
func replaying(t *testing.T) (s *server.Server, db store.Store, ran *atomic.Int32, fail *atomic.Bool) {
	t.Helper()
	s, db, ran, fail, _ = replayingFrom(t)
	return s, db, ran, fail
}

// replayingFrom is replaying with the number of the agent's first step.
func replayingFrom(
	t *testing.T,
) (s *server.Server, db store.Store, ran *atomic.Int32, fail *atomic.Bool, first *atomic.Int32) {
	t.Helper()
	db, ran, fail, first = memstore.New(), &atomic.Int32{}, &atomic.Bool{}, &atomic.Int32{}
	c := config(t)
	c.Agents = []holdfast.Agent{threeSteps(ran, fail, first)}
	c.OpenStore = func() (store.Store, error) { return db, nil }
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if got := post(t, "http://"+s.Addr(), "t", "go"); !strings.Contains(got, "all done") || ran.Load() != 3 {
		t.Fatalf("%d steps in %s", ran.Load(), got)
	}
	return s, db, ran, fail, first
}

// TestReplay: each iteration runs again and is shown, with the recorded results of its
// tools. The thread does not change.
func TestReplay(t *testing.T) {
	s, store, ran, _ := replaying(t)
	before := must(store.Head(t.Context(), localKey("t")))(t)
	var seen []string
	var last threads.Detail
	fork, err := s.Replay(t.Context(), server.LocalPrincipal(), "t",
		server.ReplayOptions{Checkpoint: "000000000002", Observe: func(d threads.Detail) {
			seen = append(seen, fmt.Sprintf("%s %d %s %d", d.Metadata.Source, d.Iteration, d.Status, len(d.History)))
			last = d
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fork 1 stopped 3", "input 1 running 3", "loop 2 running 5", "loop 3 running 7", "loop 4 idle 8"}
	if !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
	if n := ran.Load(); n != 3 {
		t.Errorf("the replay ran %d tools", n-3)
	}
	if last.ThreadID != fork || !strings.Contains(string(last.History[6]), "step 3") ||
		!strings.Contains(string(last.History[7]), "all done") {
		t.Errorf("at the end there is %s", last.History)
	}
	if after := must(store.Head(t.Context(), localKey("t")))(t); after.ETag != before.ETag {
		t.Error("the replay changed the thread")
	}
	if got, err := offline.Check(t.Context(), store, nil, func(p offline.Problem) { t.Error(p) }); err != nil ||
		got.Threads != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestReplayThatFails: the checkpoints before the error are shown, and the fork is
// named.
func TestReplayThatFails(t *testing.T) {
	s, _, _, fail := replaying(t)
	fail.Store(true)
	shown := 0
	fork, err := s.Replay(t.Context(), server.LocalPrincipal(), "t",
		server.ReplayOptions{Checkpoint: "000000000001", Observe: func(threads.Detail) { shown++ }})
	if pub := holdfast.AsError(err); fork == "" || shown != 5 ||
		pub.Code != codes.Internal && pub.Code != codes.ModelFailed {
		t.Errorf("fork %q, %d checkpoints, %v", fork, shown, err)
	}
	for _, c := range []struct{ thread, checkpoint, want string }{
		{"t", "", "none is named"}, {"t", "9", `no checkpoint "9"`}, {"nope", "000000000001", `no thread "nope"`},
	} {
		fork, err := s.Replay(t.Context(), server.LocalPrincipal(), c.thread,
			server.ReplayOptions{Checkpoint: c.checkpoint, Observe: func(threads.Detail) { t.Error("shown") }})
		if fork != "" || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %v, want %q", fork, err, c.want)
		}
	}
}

// TestReplayOfOtherCalls: a tool is not run for a call that was not recorded, unless that
// is asked for.
func TestReplayOfOtherCalls(t *testing.T) {
	s, _, ran, _, first := replayingFrom(t)
	first.Store(5) // instead of 1
	fork, err := s.Replay(t.Context(), server.LocalPrincipal(), "t", server.ReplayOptions{Checkpoint: "000000000001"})
	if pub := holdfast.AsError(err); fork == "" || pub.Code != codes.NotRecorded ||
		!strings.Contains(err.Error(), "calls step in a way that was not recorded") || ran.Load() != 3 {
		t.Errorf("fork %q, %d tools ran, %v", fork, ran.Load()-3, err)
	}
	if _, err := s.Replay(t.Context(), server.LocalPrincipal(), "t",
		server.ReplayOptions{Checkpoint: "000000000001", RunTools: true}); err != nil || ran.Load() != 4 {
		t.Errorf("%d tools ran, %v", ran.Load()-3, err)
	}
}

// TestReplayShowsWhatItDoes: the checkpoints are shown while the replay runs, here while
// the model does not answer.
func TestReplayShowsWhatItDoes(t *testing.T) {
	s, _, _, _, first := replayingFrom(t)
	first.Store(-1) // the model waits before its last answer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shown := 0
	fork, err := s.Replay(ctx, server.LocalPrincipal(), "t",
		server.ReplayOptions{Checkpoint: "000000000001", Observe: func(threads.Detail) {
			if shown++; shown == 5 { // fork, input, and three steps
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || shown < 5 {
		t.Errorf("%d checkpoints were shown, %v", shown, err)
	}
	run := must(s.Thread(t.Context(), server.LocalPrincipal(), fork))(t).Run
	must(s.Cancel(t.Context(), server.LocalPrincipal(), fork, run))(t)
}

func localKey(thread string) store.ThreadKey {
	return store.ThreadKey{Tenant: server.LocalPrincipal().Tenant, Thread: thread}
}
