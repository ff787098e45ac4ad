package offline_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// counting is an agent that charges once and then answers.
func counting(charged *atomic.Int32) holdfast.Agent {
	charge := holdfast.NewTool("charge", "charges", func(context.Context, struct{}) (string, error) {
		charged.Add(1)
		return "charged", nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	return holdfast.Agent{
		Name:  "a",
		Tools: []holdfast.Tool{charge},
		Model: holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
					return
				}
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: "charge", Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			}
		}),
	}
}

// TestReplay: a thread runs again in a copy, with the recorded results, whatever the
// server's configuration deletes; the store does not change.
func TestReplay(t *testing.T) {
	var charged atomic.Int32
	agent := counting(&charged)
	db := filled(t, agent, 1)
	before := must(db.Head(t.Context(), localKey("t0")))(t)
	cfg := server.Config{
		Agents:             []holdfast.Agent{agent},
		Log:                slog.New(slog.NewTextHandler(t.Output(), nil)),
		KeepCheckpoints:    1,
		DeleteThreadsAfter: time.Nanosecond,
	}
	first := must(offline.Inspect(t.Context(), db, localKey("t0"), ""))(t).Checkpoints[0].ID
	var shown []string
	made, err := offline.Replay(t.Context(), db, localKey("t0"), cfg,
		offline.ReplayOptions{Checkpoint: first, Show: func(in *offline.Inspection) {
			shown = append(shown, in.Shown.Metadata.Source+" "+strconv.Itoa(len(in.History)))
		}})
	if err != nil || charged.Load() != 1 {
		t.Fatalf("%d charges, %v", charged.Load(), err)
	}
	if want := []string{"fork 1", "input 1", "loop 3", "loop 4"}; !slices.Equal(shown, want) {
		t.Errorf("shown %q, want %q", shown, want)
	}
	in := must(offline.Inspect(t.Context(), made.Store, made.Key, ""))(t)
	if len(in.History) != 4 || in.History[3].Text != "done" || in.Parent != "t0" {
		t.Errorf("%+v", in)
	}
	if after := must(db.Head(t.Context(), localKey("t0")))(t); after.ETag != before.ETag {
		t.Error("the replay changed the thread")
	}
	if got, err := offline.Check(t.Context(), db, nil, func(p offline.Problem) { t.Error(p) }); err != nil ||
		got.Threads != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := offline.Replay(t.Context(), db, localKey("nope"), cfg,
		offline.ReplayOptions{Checkpoint: first}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a thread that is not there: %v", err)
	}
	if made, err := offline.Replay(t.Context(), db, localKey("t0"), server.Config{},
		offline.ReplayOptions{Checkpoint: first}); made != nil || err == nil {
		t.Errorf("without agents: %+v, %v", made, err)
	}
}

// TestCopy: a copy has the thread, and only that one; nothing of it is shared.
func TestCopy(t *testing.T) {
	db := filled(t, hello, 2)
	copied := must(offline.Copy(t.Context(), db, localKey("t1")))(t)
	if got, err := offline.Check(t.Context(), copied, nil, func(p offline.Problem) { t.Error(p) }); err != nil ||
		got.Threads != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := offline.Copy(t.Context(), memstore.New(), localKey("t1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a copy of nothing: %v", err)
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
