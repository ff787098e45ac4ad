package loop_test

import (
	"context"
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
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The tests of docs/papers.md that no other file has.

// TestStatesThatAreRefused: no run continues from a state that is newer, damaged or
// impossible, and the state stays as it is.
func TestStatesThatAreRefused(t *testing.T) {
	key := store.ThreadKey{Tenant: "acme", Thread: "t"}
	for name, c := range map[string]struct {
		change func(st *thread.State) []byte
		code   string
	}{
		"no format": {func(st *thread.State) []byte { st.Format = 0; return st.Encode() }, codes.CheckpointUnreadable},
		"newer": {func(st *thread.State) []byte { st.Format = thread.Format + 1; return st.Encode() },
			codes.VersionTooNew},
		"damaged":  {func(st *thread.State) []byte { return st.Encode()[1:] }, codes.CheckpointUnreadable},
		"negative": {func(st *thread.State) []byte { st.Iteration = -1; return st.Encode() }, codes.CheckpointInvalid},
		"claims":   {func(st *thread.State) []byte { st.Takeovers = -1; return st.Encode() }, codes.CheckpointInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := looptest.Travelled(t)
			head := looptest.Must(e.Store.Head(t.Context(), key))(t)
			c0 := &store.Commit{
				Key:       key,
				ID:        "broken",
				Expect:    head.Position(),
				User:      head.User,
				Fence:     head.Fence,
				UpdatedAt: head.UpdatedAt,
			}
			c0.State = c.change(looptest.Must(thread.DecodeState(head.State))(t))
			if err := e.Store.Commit(t.Context(), c0); err != nil {
				t.Fatal(err)
			}
			_, postErr := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r9", looptest.UserSays("u9", "more")))
			_, getErr := e.Keeper.Thread(t.Context(), looptest.Alice, "t")
			for _, err := range []error{postErr, getErr} {
				if looptest.Code(err) != c.code {
					t.Errorf("got %v, want %s", err, c.code)
				}
			}
			if after := looptest.Must(e.Store.Head(t.Context(), key))(t); string(after.State) != string(c0.State) {
				t.Error("it was touched")
			}
		})
	}
}

// TestLatestIsOverwritten: with retention latest there is one checkpoint, the last.
func TestLatestIsOverwritten(t *testing.T) {
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.KeepCheckpoints = 1 },
		looptest.Traveller(&looptest.Notebook{}))
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	all := looptest.Must(e.Store.Values(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"},
		store.KindCheckpoint, "", 0))(t)
	if len(all) != 1 {
		t.Fatalf("%d checkpoints are kept, want the latest", len(all))
	}
	if cp := looptest.Must(thread.DecodeCheckpoint(all[0].Data))(t); cp.State.Iteration != 3 ||
		cp.State.Status() != threads.StatusIdle {
		t.Errorf("the latest is %+v", cp.State)
	}
}

// TestFrequencies: the frequency decides which checkpoints are listed; with manual, only those
// that are asked for.
func TestFrequencies(t *testing.T) {
	for f, want := range map[loop.Frequency]string{
		loop.PerIteration: "input -1, loop 1, loop 2, loop 3", loop.PerTurn: "input -1, loop 3", loop.Manual: "",
	} {
		t.Run(string(f), func(t *testing.T) {
			e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.Frequency = f },
				looptest.Traveller(&looptest.Notebook{}))
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			var got []string
			for _, cp := range looptest.Checkpoints(t, e, "t") {
				got = append(got, fmt.Sprintf("%s %d", cp.Metadata.Source, cp.Metadata.Step))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("the checkpoints are %q, want %q", got, want)
			}
		})
	}
}

// TestScenarios are the four of the papers.
func TestScenarios(t *testing.T) {
	e, _ := looptest.Travelled(t)
	_, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("new", "r1"))
	var pub *holdfast.Error
	if !errors.As(err, &pub) || pub.Code != codes.NothingToRun ||
		pub.Message != "No messages provided and thread has no existing history or checkpoint." {
		t.Errorf("1, no checkpoint and no messages: %v", err)
	}
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("new", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err)) // 2, no checkpoint and messages
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "t")[1].ID}))(t)
	_, err = e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r4", looptest.UserSays("u4", "more")))
	if !errors.As(err, &pub) || pub.Code != codes.MidExecution || !strings.Contains(pub.Message, "at iteration 1") {
		t.Errorf("4, a checkpoint and messages: %v", err)
	}
	events := looptest.Resumed(t, e, "t", "r3") // 3, a checkpoint and no messages
	looptest.Succeeded(t, events)
	var kinds []agui.Type
	for _, ev := range events[:3] {
		kinds = append(kinds, agui.EventType(ev))
	}
	if !slices.Equal(kinds, []agui.Type{agui.TypeRunStarted, agui.TypeMessagesSnapshot, agui.TypeStateSnapshot}) {
		t.Errorf("a resume begins with %v", kinds)
	}
}

// TestPendingWrites: each result is there the moment it exists, in the order in which
// they came, under its own thread; the next checkpoint takes them over.
func TestPendingWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		step := func(name string, d time.Duration) holdfast.Tool {
			return looptest.Tool(name, holdfast.EffectIdempotent, func(context.Context) (string, error) {
				time.Sleep(d)
				if name == "c" {
					<-release
					return "", errors.New("c failed")
				}
				return name + " done", nil
			})
		}
		model := holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if len(req.Messages) > 1 {
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
					return
				}
				for i, name := range []string{"a", "b", "c"} {
					yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: "{}"}}, nil)
				}
				yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
			}
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{
			step("a", 2*time.Second), step("b", time.Second), step("c", 0),
		}})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		reply2, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("other", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		pending := func(thread string) []string {
			newest := looptest.Checkpoints(t, e, thread)
			d := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, thread, newest[len(newest)-1].ID))(t)
			out := []string{}
			for _, p := range d.PendingWrites {
				if p.ThreadID != thread || p.CompletedAt.IsZero() || p.CallID == "" {
					t.Errorf("%+v", p)
				}
				out = append(out, fmt.Sprintf("%s %s %d %v", p.Tool, p.Result, p.Iteration, p.Failed))
			}
			return out
		}
		for _, c := range []struct {
			after time.Duration
			want  []string
		}{
			{500 * time.Millisecond, []string{}},
			{time.Second, []string{`b "b done" 0 false`}},
			{time.Second, []string{`b "b done" 0 false`, `a "a done" 0 false`}},
		} {
			time.Sleep(c.after)
			for _, thread := range []string{"t", "other"} {
				if got := pending(thread); !slices.Equal(got, c.want) {
					t.Errorf("the pending writes of %s are %q, want %q", thread, got, c.want)
				}
			}
		}
		close(release)
		looptest.Succeeded(t, looptest.Collect(t, reply, nil))
		looptest.Succeeded(t, looptest.Collect(t, reply2, nil))
		if got := pending("t"); len(got) != 0 {
			t.Errorf("after the checkpoint there are still %q", got)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:b done", "tool:a done", "tool:c failed",
			"assistant:done")
	})
}

// TestHandMadeStore: a run continues from the middle of a thread that has nothing but what it
// must: no usage, title, ETags, pending writes or anything else that may be missing.
func TestHandMadeStore(t *testing.T) {
	db := memstore.New()
	key := store.ThreadKey{Tenant: "acme", Thread: "old"}
	const open = `{"dataFormat":1,"agent":"a","leaf":"m1","phase":"stopped","run":"r1","outcome":"error",` +
		`"code":"cut_off","text":"cut","iteration":1,` +
		`"boundary":"1-abcdef","calls":[{"id":"c1","name":"charge","run":"r1"}],"count":4,"checkpoints":1,` +
		`"lastCheckpoint":"000000000001"}`
	err := db.Commit(t.Context(), &store.Commit{
		Key:       key,
		ID:        "c0",
		Expect:    store.Position{Next: 1},
		User:      "alice",
		Fence:     store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		UpdatedAt: time.Now(),
		State:     []byte(open),
		Records:   [][]byte{[]byte(`{"type":"RUN_STARTED","threadId":"old","runId":"r1","protocolVersion":"1.0"}`)},
		Messages: []store.Message{
			{ID: "u1", Data: []byte(`{"id":"u1","role":"user","content":"go"}`)},
			{
				ID:     "m0",
				Parent: "u1",
				Data: []byte(`{"id":"m0","role":"assistant","content":"","toolCalls":[{"id":"c0","type":"function",` +
					`"function":{"name":"look","arguments":"{\"n\":1}"}}]}`),
			},
			{ID: "t0", Parent: "m0", Data: []byte(`{"id":"t0","role":"tool","toolCallId":"c0","content":"look 1"}`)},
			{
				ID:     "m1",
				Parent: "t0",
				Data: []byte(`{"id":"m1","role":"assistant","content":"","toolCalls":[{"id":"c1","type":"function",` +
					`"function":{"name":"charge","arguments":"{\"n\":2}"}}]}`),
			},
		},
		Put: []store.Value{
			{
				Kind: store.KindRun,
				ID:   "r1",
				Data: []byte(`{"dataFormat":1,"id":"r1","agent":"a","user":"alice","hash":"x"}`),
			},
			{
				Kind: store.KindCheckpoint,
				ID:   "000000000001",
				Data: []byte(`{"dataFormat":1,"id":"000000000001","source":"loop","step":1,"state":` + open + `}`),
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := looptest.Start(t, db, nil, looptest.Traveller(&looptest.Notebook{}))
	if cp := looptest.Checkpoints(t, e, "old"); len(cp) != 1 || cp[0].Format != 1 || cp[0].Iteration != 1 {
		t.Errorf("its checkpoints are %+v", cp)
	}
	looptest.Succeeded(t, looptest.Resumed(t, e, "old", "r2"))
	looptest.WantTexts(t, e, "old", looptest.WholeTrip...)
}
