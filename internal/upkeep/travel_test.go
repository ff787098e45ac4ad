package upkeep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

func TestHistoryLists(t *testing.T) {
	e, _ := looptest.Travelled(t)
	var got []string
	for _, cp := range looptest.Checkpoints(t, e, "t") {
		got = append(got, fmt.Sprintf("%s %d %s", cp.Metadata.Source, cp.Metadata.Step, cp.Status))
	}
	want := []string{"input -1 running", "loop 1 running", "loop 2 running", "loop 3 idle"}
	if !slices.Equal(got, want) {
		t.Fatalf("the checkpoints are %q, want %q", got, want)
	}
	all := looptest.Checkpoints(t, e, "t")
	for i := 1; i < len(all); i++ {
		if all[i].Metadata.Parent != all[i-1].ID {
			t.Errorf("the parent of %s is %s, want %s", all[i].ID, all[i].Metadata.Parent, all[i-1].ID)
		}
	}
	page := looptest.Must(e.Keeper.Checkpoints(t.Context(), looptest.Alice, "t", all[3].ID, time.Time{}, 2))(t)
	if len(page) != 2 || page[0].ID != all[2].ID || page[1].ID != all[1].ID {
		t.Errorf("two before the newest are %v", page)
	}
	if none := looptest.Must(e.Keeper.Checkpoints(t.Context(), looptest.Alice, "t", "", all[0].CreatedAt,
		10))(t); len(none) != 0 {
		t.Errorf("before the first one there is %v", none)
	}
	detail := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t", all[1].ID))(t)
	if len(detail.History) != 3 || string(detail.State) != `{"last":"look"}` || detail.Iteration != 1 {
		t.Errorf("after the first iteration there were %d messages, the state %s, iteration %d", len(detail.History),
			detail.State, detail.Iteration)
	}
	_, err := e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t", "nope")
	if looptest.Code(err) != codes.NotFound {
		t.Errorf("an unknown checkpoint: %v", err)
	}
	if _, err := e.Keeper.Checkpoints(t.Context(), holdfast.Principal{Tenant: "acme", User: "bob"}, "t", "",
		time.Time{}, 10); looptest.Code(err) != codes.NotFound {
		t.Errorf("bob lists alice's: %v", err)
	}
}

func TestRewindAndGoOn(t *testing.T) {
	e, j := looptest.Travelled(t)
	all := looptest.Checkpoints(t, e, "t")
	got := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: all[1].ID}))(t)
	if len(got.Effects) != 1 || got.Effects[0].Tool != "charge" || got.Effects[0].Effect != "once" ||
		string(got.Effects[0].Arguments) != `{"n": 2}` {
		t.Errorf("what has happened since is %+v, want the charge", got.Effects)
	}
	if m := got.Checkpoint.Metadata; m.Source != "fork" || m.Parent != all[1].ID ||
		got.Thread.Status != threads.StatusStopped {
		t.Errorf("the thread is %+v at %+v", got.Thread, m)
	}
	looptest.WantTexts(t, e, "t", looptest.WholeTrip[:3]...)
	if state := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice,
		"t"))(t); string(state.State) != `{"last":"look"}` {
		t.Errorf("the state is %s", state.State)
	}
	// New messages do not fit in the middle of a run; continuing it does.
	_, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r2", looptest.UserSays("u2", "more")))
	if looptest.Code(err) != codes.MidExecution {
		t.Errorf("new messages: %v", err)
	}
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r3"))
	looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
	if did := j.Take(); len(did) != 1 || !strings.HasPrefix(did[0], "charge ") {
		t.Errorf("going on did %q, want a new charge", did)
	}
}

func TestRewindToTheEndIsIdle(t *testing.T) {
	e, _ := looptest.Travelled(t)
	all := looptest.Checkpoints(t, e, "t")
	got := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: all[3].ID}))(t)
	if got.Thread.Status != threads.StatusIdle || len(got.Effects) != 0 {
		t.Errorf("at its last checkpoint the thread is %+v", got)
	}
}

func TestRewindToAMessage(t *testing.T) {
	e, j := looptest.Travelled(t)
	got := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
	if got.Thread.Status != threads.StatusIdle || len(got.Effects) != 1 {
		t.Errorf("back at the question the thread is %+v", got)
	}
	looptest.WantTexts(t, e, "t", "user:go")
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2")) // unanswered: it runs
	looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
	if did := j.Take(); len(did) != 2 {
		t.Errorf("answering anew did %q", did)
	}
	if _, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Message: "nope"}); looptest.Code(err) != codes.NotFound {
		t.Errorf("an unknown message: %v", err)
	}
	if _, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{}); looptest.Code(err) != codes.InvalidInput {
		t.Errorf("to nowhere: %v", err)
	}
}

func TestReuseResults(t *testing.T) {
	for name, where := range map[string]string{"in place": "t", "in a fork": "f"} {
		t.Run(name, func(t *testing.T) {
			e, j := looptest.Travelled(t)
			to := threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "t")[0].ID, ReuseResults: true, Thread: "f"}
			if where == "t" {
				looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", to))(t)
			} else {
				looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", to))(t)
			}
			looptest.Succeeded(t, looptest.Resumed(t, e, where, "r2"))
			looptest.WantTexts(t, e, where, looptest.WholeTrip...)
			if did := j.Take(); len(did) != 0 {
				t.Errorf("with recorded results the tools did %q", did)
			}
			if state := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice,
				where))(t); string(state.State) != `{"last":"charge"}` {
				t.Errorf("the recorded calls left the state %s", state.State)
			}
			// Each is used once.
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", &agui.RunAgentInput{
				ThreadID:        where,
				RunID:           "r3",
				ProtocolVersion: agui.ProtocolVersion,
				Messages:        []agui.Message{looptest.UserSays("u9", "go")},
				ForwardedProps:  json.RawMessage(`{"holdfast":{"branch":true}}`),
			})
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			left := looptest.Must(e.Store.Values(t.Context(), store.ThreadKey{Tenant: "acme", Thread: where},
				store.KindReuse, "", 0))(t)
			if len(left) != 0 {
				t.Errorf("%d recorded results are left", len(left))
			}
		})
	}
}

// TestOnlyRecorded: with nothing but recorded results, a call that was not made before is
// refused and ends the run; after a new message tools run again.
func TestOnlyRecorded(t *testing.T) {
	j := &looptest.Notebook{}
	agent := looptest.Traveller(j)
	var amount atomic.Int32
	agent.Model = holdfast.ModelFunc(func(ctx context.Context,
		req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		charge := looptest.Calls("charge", fmt.Sprintf(`{"n": %d}`, amount.Load()))
		done := holdfast.Delta{Text: "done"}
		return looptest.Say(looptest.Calls("look", `{"n":1}`), charge, done, charge, done).Stream(ctx, req)
	})
	amount.Store(2)
	e := looptest.Start(t, memstore.New(), nil, agent)
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	j.Take()
	to := threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "t")[0].ID, OnlyRecorded: true, Thread: "same"}
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", to))(t)
	looptest.Succeeded(t, looptest.Resumed(t, e, "same", "r2"))
	looptest.WantTexts(t, e, "same", looptest.WholeTrip...)

	amount.Store(3)
	to.Thread = "other"
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", to))(t)
	ended, ok := looptest.LastOf(looptest.Resumed(t, e, "other", "r2")).(agui.RunError)
	if !ok || ended.Code != codes.NotRecorded ||
		!strings.Contains(ended.FullText(), "calls charge in a way that was not recorded") {
		t.Fatalf("another call ended with %+v", ended)
	}
	looptest.Succeeded(t, looptest.Resumed(t, e, "other", "r3"))
	if did := j.Take(); len(did) != 0 {
		t.Errorf("with only recorded results the tools did %q", did)
	}
	reply, err = e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("other", "r4", looptest.UserSays("u2", "again")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	if did := j.Take(); len(did) != 1 || !strings.HasPrefix(did[0], "charge ") {
		t.Errorf("after a new message the tools did %q", did)
	}
}

func TestForkLeavesTheOther(t *testing.T) {
	e, j := looptest.Travelled(t)
	before := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
	all := looptest.Checkpoints(t, e, "t")
	got := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: all[2].ID}))(t)
	fork := got.Thread.ID
	if fork == "" || got.Thread.Parent != "t" || got.Thread.ParentCheckpoint != all[2].ID || len(got.Effects) != 0 {
		t.Fatalf("the fork is %+v", got)
	}
	looptest.WantTexts(t, e, fork, looptest.WholeTrip[:5]...)
	looptest.Succeeded(t, looptest.Resumed(t, e, fork, "r2"))
	looptest.WantTexts(t, e, fork, looptest.WholeTrip...)
	if did := j.Take(); len(did) != 0 {
		t.Errorf("after the last call the fork did %q", did)
	}
	after := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
	if after.ETag != before.ETag {
		t.Error("forking changed the thread")
	}
	children := looptest.Must(e.Keeper.Children(t.Context(), looptest.Alice, "t"))(t)
	if len(children) != 1 || children[0].ID != fork {
		t.Errorf("the children are %v", children)
	}
	if _, err := e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Thread: fork}); looptest.Code(err) != codes.ThreadExists {
		t.Errorf("forking onto a thread: %v", err)
	}
	// Without a place it begins where the thread stands.
	whole := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Thread: "whole"}))(t)
	if whole.Thread.Status != threads.StatusIdle {
		t.Errorf("the fork of the whole thread is %+v", whole.Thread)
	}
	looptest.WantTexts(t, e, "whole", looptest.WholeTrip...)
	n := looptest.Must(e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", true))(t)
	if n != 3 {
		t.Errorf("%d threads were deleted with the children, want 3", n)
	}
	if _, err := e.Keeper.Children(t.Context(), looptest.Alice, "t"); looptest.Code(err) != codes.NotFound {
		t.Errorf("the children of nobody: %v", err)
	}
	for _, id := range []string{"t", fork, "whole"} {
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, id); looptest.Code(err) != codes.NotFound {
			t.Errorf("%s is still there: %v", id, err)
		}
	}
}

// TestChildrenOfAnEarlierThread: a thread whose id was used before has no children of the
// earlier one, and is deleted without them.
func TestChildrenOfAnEarlierThread(t *testing.T) {
	e, _ := looptest.Travelled(t)
	old := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread.ID
	looptest.Must(e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false))(t)
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	if list := looptest.Must(e.Keeper.Children(t.Context(), looptest.Alice, "t"))(t); len(list) != 0 {
		t.Errorf("the new thread has the children %+v", list)
	}
	mine := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread.ID
	if list := looptest.Must(e.Keeper.Children(t.Context(), looptest.Alice, "t"))(t); len(list) != 1 ||
		list[0].ID != mine {
		t.Errorf("after a fork the new thread has the children %+v", list)
	}
	if n := looptest.Must(e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", true))(t); n != 2 {
		t.Errorf("%d threads were deleted, want the new one and its fork", n)
	}
	looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, old))(t)
}

// TestApprovalsAreUsedOnce: a thread that goes back to where a person had said yes
// asks again.
func TestApprovalsAreUsedOnce(t *testing.T) {
	j := &looptest.Notebook{}
	ask := holdfast.NewTool("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
		c := holdfast.CallFrom(ctx)
		if c.Answer == nil {
			return "", &holdfast.Interrupt{Message: "Really?"}
		}
		j.Note("pay " + c.Key)
		return "paid", nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("pay", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{ask},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	asked := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunFinished).Outcome.Interrupts
	yes := func(thread, run, id string) []agui.Event {
		in := looptest.RunInput(thread, run)
		in.Resume = []agui.ResumeEntry{
			{InterruptID: id, Status: agui.ResumeResolved, Payload: json.RawMessage(`"yes"`)},
		}
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		return looptest.Collect(t, reply, err)
	}
	looptest.Succeeded(t, yes("t", "r2", asked[0].ID))
	if did := j.Take(); len(did) != 1 {
		t.Fatalf("the first yes did %q", did)
	}
	var answered string
	for _, cp := range looptest.Checkpoints(t, e, "t") {
		if cp.Metadata.Source == "input" && cp.Run == "r2" {
			answered = cp.ID
		}
	}
	got := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: answered}))(t)
	if got.Thread.Status != threads.StatusInterrupted || len(got.Thread.Interrupts) != 1 ||
		got.Thread.Interrupts[0].ID == asked[0].ID {
		t.Fatalf("back where the person had said yes, the thread is %+v", got.Thread)
	}
	if len(got.Effects) != 1 || got.Effects[0].Tool != "pay" {
		t.Errorf("the payment is not among the effects: %+v", got.Effects)
	}
	asksAgain := func() string {
		t.Helper()
		return looptest.LastOf(looptest.Resumed(t, e, "t", "look")).(agui.RunFinished).Outcome.Interrupts[0].Message
	}
	const want = "Really? Note that this was carried out before, which going back has not undone: a " +
		"yes carries it out again."
	if got := asksAgain(); got != want {
		t.Errorf("the question is %q", got)
	}
	if len(j.Take()) != 0 {
		t.Error("the old yes was used again")
	}
	looptest.Succeeded(t, yes("t", "r3", got.Thread.Interrupts[0].ID))
	if did := j.Take(); len(did) != 1 {
		t.Errorf("a new yes did %q", did)
	}
}

// TestCarriedOutCallsAreNotRepeated: back at a checkpoint with open calls, a call
// that was carried out after it is not simply started again.
func TestCarriedOutCallsAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		var fail atomic.Bool
		fail.Store(true)
		pay := looptest.Tool("pay", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
			j.Note("pay")
			return "paid", nil
		})
		slow := looptest.Tool("slow", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			if fail.Load() {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "slow", nil
		})
		model := looptest.Slowly([]holdfast.Delta{
			{
				Call: &holdfast.CallDelta{Index: 0, Name: "pay", Arguments: "{}"},
			},
			{Call: &holdfast.CallDelta{Index: 1, Name: "slow", Arguments: "{}"}},
			{Finish: holdfast.FinishToolCalls},
		}, []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}})
		store := &looptest.Mortal{Store: memstore.New()}
		agent := holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{pay, slow}}
		one := looptest.Start(t, store, func(c *looptest.Config) { c.Recover = false }, agent)
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // paid, and slow
		store.Dead.Store(true)
		fail.Store(false)
		other := looptest.Start(t, store.Store, func(c *looptest.Config) { c.Recover = false }, agent)
		time.Sleep(10 * time.Second) // the lease runs out, and the run is cut off
		var input string
		for _, cp := range looptest.Checkpoints(t, other, "t") {
			if cp.Metadata.Source == "loop" {
				input = cp.ID // the one that was taken when it was cut off: slow is open
			}
		}
		if did := j.Take(); len(did) != 1 {
			t.Fatalf("the first run did %q", did)
		}
		looptest.Succeeded(t, looptest.Resumed(t, other, "t", "r2"))
		got := looptest.Must(other.Keeper.Rewind(t.Context(), looptest.Alice, "t",
			threads.Travel{Checkpoint: input}))(t)
		if got.Thread.Status != threads.StatusStopped {
			t.Fatalf("the thread is %+v", got.Thread)
		}
		looptest.Succeeded(t, looptest.Resumed(t, other, "t", "r3"))
		if did := j.Take(); len(did) != 0 {
			t.Errorf("it was paid again: %q", did)
		}
	})
}

// meanwhile calls a function, once, before it reads which calls were started.
type meanwhile struct {
	store.Store
	f func()
}

func (s *meanwhile) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	if f := s.f; f != nil && kind == store.KindIntent {
		s.f = nil
		f()
	}
	return s.Store.Values(ctx, key, kind, before, limit)
}

// TestForkWhileACallIsMade: a fork that has read that a call is open, and then that none has been started
// because it has its result meanwhile, does not make the call again.
func TestForkWhileACallIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, gate := &looptest.Notebook{}, make(chan struct{})
		pay := looptest.Tool("pay", holdfast.EffectOnce, func(context.Context) (string, error) {
			<-gate
			j.Note("pay")
			return "paid", nil
		})
		db := &meanwhile{Store: memstore.New()}
		e := looptest.Start(t, db, nil, holdfast.Agent{
			Name: "a", Tools: []holdfast.Tool{pay},
			Model: looptest.Say(looptest.Calls("pay", "{}"), holdfast.Delta{Text: "done"}),
		})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it pays
		db.f = func() {
			close(gate)
			looptest.Succeeded(t, looptest.Collect(t, reply, nil))
		}
		got := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t)
		looptest.Resumed(t, e, got.Thread.ID, "r2")
		if did := j.Take(); len(did) != 1 {
			t.Errorf("it was paid %d times", len(did))
		}
	})
}

func TestETags(t *testing.T) {
	e, _ := looptest.Travelled(t)
	cp := looptest.Checkpoints(t, e, "t")[1].ID
	for name, do := range map[string]func(etag string) error{
		"rewind": func(tag string) error {
			_, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: cp, ETag: tag})
			return err
		},
		"fork": func(tag string) error {
			_, err := e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: cp, ETag: tag})
			return err
		},
		"mark": func(tag string) error {
			_, err := e.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{ETag: tag})
			return err
		},
		"prune": func(tag string) error {
			_, err := e.Keeper.Prune(t.Context(), looptest.Alice, "t", tag, 1, false)
			return err
		},
		"delete": func(tag string) error {
			_, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", tag, false)
			return err
		},
	} {
		now := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).ETag
		err := do("old")
		var pub *holdfast.Error
		if !errors.As(err, &pub) || pub.Code != codes.CheckpointConflict || pub.Details["expected"] != "old" ||
			pub.Details["actual"] != now {
			t.Errorf("%s with an old ETag: %v", name, err)
		}
		if after := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).ETag; after != now {
			t.Errorf("%s with an old ETag changed the thread", name)
		}
	}
}

func TestMark(t *testing.T) {
	e, _ := looptest.Travelled(t)
	cp := looptest.Must(e.Keeper.Mark(t.Context(), looptest.Alice, "t",
		threads.Mark{Label: "before lunch", State: json.RawMessage(`{"edited":true}`)}))(t)
	if cp.Metadata.Source != "update" || cp.Metadata.Label != "before lunch" {
		t.Errorf("the checkpoint is %+v", cp)
	}
	if state := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice,
		"t"))(t); string(state.State) != `{"edited":true}` {
		t.Errorf("the state is %s", state.State)
	}
	if _, err := e.Keeper.Mark(t.Context(), looptest.Alice, "t",
		threads.Mark{State: json.RawMessage(`{`)}); looptest.Code(err) != codes.InvalidInput {
		t.Errorf("a state that is not JSON: %v", err)
	}
}

func TestPruneTakesBranches(t *testing.T) {
	e, _ := looptest.Travelled(t)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
	key := store.ThreadKey{Tenant: "acme", Thread: "t"}
	before := looptest.Must(e.Store.Messages(t.Context(), key))(t)
	dry := looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 2, true))(t)
	if after := looptest.Must(e.Store.Messages(t.Context(), key))(t); len(after) != len(before) {
		t.Error("a dry run removed messages")
	}
	did := looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 2, false))(t)
	if did.Checkpoints != dry.Checkpoints || did.Messages != dry.Messages || did.Messages != 5 {
		t.Errorf("pruning did %+v, the dry run said %+v; 5 messages are on the old branch", did, dry)
	}
	if left := looptest.Checkpoints(t, e, "t"); len(left) != 2 {
		t.Errorf("%d checkpoints are left, want 2", len(left))
	}
	if blobs := looptest.Must(e.Store.Values(t.Context(), key, store.KindBlob, "", 0))(t); len(blobs) > 2 {
		t.Errorf("%d versions of the state are left", len(blobs))
	}
	looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
	looptest.Collect(t, reply, err) // its log can still be shown
	if err := e.Keeper.Archive(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
	// The log of the first run is pruned; a watcher that asks for it gets what there is.
	reply, err = e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	if got := looptest.Reduce(looptest.Collect(t, reply, err)); len(got) < len(looptest.WholeTrip) {
		t.Errorf("a run whose log was pruned shows %q", got)
	}
}

// TestAllCheckpointsAreKept: without a bound nothing leaves the list by itself.
func TestAllCheckpointsAreKept(t *testing.T) {
	const marks = 150
	for keep, want := range map[int]int{-1: marks + 4, 100: 100} {
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.KeepCheckpoints = keep },
			looptest.Traveller(&looptest.Notebook{}))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		for range marks {
			looptest.Must(e.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{}))(t)
		}
		list := looptest.Must(e.Keeper.Checkpoints(t.Context(), looptest.Alice, "t", "", time.Time{}, 1000))(t)
		if len(list) != want {
			t.Errorf("keeping %d: %d checkpoints are listed, want %d", keep, len(list), want)
		}
	}
}

func TestLatestKeepsNoHistory(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.KeepCheckpoints = 1 }, looptest.Traveller(j))
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	_, listErr := e.Keeper.Checkpoints(t.Context(), looptest.Alice, "t", "", time.Time{}, 10)
	_, loadErr := e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t", "x")
	_, rewindErr := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: "x"})
	for _, err := range []error{listErr, loadErr, rewindErr} {
		if looptest.Code(err) != codes.HistoryNotKept {
			t.Errorf("got %v, want history_not_kept", err)
		}
	}
	if did := looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t); did.Checkpoints != 0 {
		t.Errorf("pruning did %+v", did)
	}
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
	looptest.WantTexts(t, e, "t", "user:go")
}

func TestCleanUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		longLease := func(c *looptest.Config) { c.Lease = time.Hour } // it is renewed in each of the ten days
		e := looptest.Start(t, memstore.New(), longLease, looptest.Traveller(&looptest.Notebook{}))
		for _, id := range []string{"old", "stopped", "new"} {
			if id == "new" {
				time.Sleep(10 * 24 * time.Hour)
			}
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput(id, "r", looptest.UserSays("u1", "go")))
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			if id == "stopped" {
				looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, id,
					threads.Travel{Checkpoint: looptest.Checkpoints(t, e, id)[1].ID}))(t)
			}
		}
		week := time.Now().Add(-7 * 24 * time.Hour)
		dry := looptest.Must(e.Keeper.DeleteOlderThan(t.Context(), looptest.Alice, week, true))(t)
		did := looptest.Must(e.Keeper.DeleteOlderThan(t.Context(), looptest.Alice, week, false))(t)
		if did.Threads != 2 || did.Checkpoints != dry.Checkpoints || did.Checkpoints != 3+4 {
			t.Errorf("deleting old checkpoints did %+v, the dry run said %+v", did, dry)
		}
		for _, id := range []string{"old", "stopped"} {
			if left := looptest.Checkpoints(t, e, id); len(left) != 1 {
				t.Errorf("%s has %d checkpoints, want its newest", id, len(left))
			}
		}
		dry = looptest.Must(e.Keeper.DeleteInactive(t.Context(), looptest.Alice, week, true))(t)
		if dry.Threads != 1 || dry.Kept != 1 {
			t.Errorf("a dry run would delete %+v, want old, and not the one that is stopped", dry)
		}
		looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "old"))(t)
		if did := looptest.Must(e.Keeper.DeleteInactive(t.Context(), looptest.Alice, week,
			false))(t); did.Threads != 1 {
			t.Errorf("deleting inactive threads did %+v", did)
		}
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "old"); looptest.Code(err) != codes.NotFound {
			t.Errorf("old is still there: %v", err)
		}
		looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "new"))(t)
		looptest.Succeeded(t, looptest.Resumed(t, e, "stopped", "r2"))
	})
}

func TestNothingIsDoneToARunningThread(t *testing.T) {
	hold := make(chan struct{})
	slow := looptest.Tool("slow", holdfast.EffectPure, func(context.Context) (string, error) { <-hold; return "", nil })
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("slow", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{slow},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	if err != nil {
		t.Fatal(err)
	}
	_, deleteErr := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false)
	_, rewindErr := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"})
	_, markErr := e.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{State: []byte(`{"a":1}`)})
	_, pruneErr := e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false)
	for _, err := range []error{deleteErr, rewindErr, markErr, pruneErr} {
		if looptest.Code(err) != codes.RunInProgress {
			t.Errorf("got %v, want run_in_progress", err)
		}
	}
	close(hold)
	looptest.Succeeded(t, looptest.Collect(t, reply, nil))
}

// TestStale: no run continues from a thread whose history was changed behind its head, unless
// the request asks for it.
func TestStale(t *testing.T) {
	e, _ := looptest.Travelled(t)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "t")[1].ID}))(t)
	key := store.ThreadKey{Tenant: "acme", Thread: "t"}
	head := looptest.Must(e.Store.Head(t.Context(), key))(t)
	st := looptest.Must(thread.DecodeState(head.State))(t)
	st.Count += 2
	c := &store.Commit{
		Key:       key,
		ID:        "stale",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		UpdatedAt: head.UpdatedAt,
	}
	c.State = st.Encode()
	if err := e.Store.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
	if looptest.Code(err) != codes.CheckpointStale ||
		!strings.Contains(err.Error(), "Conversation has 3 messages but checkpoint expects 5") {
		t.Fatalf("got %v", err)
	}
	in := looptest.RunInput("t", "r2")
	in.ForwardedProps = json.RawMessage(`{"holdfast":{"allowStale":true}}`)
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	for _, cp := range looptest.Checkpoints(t, e, "t") {
		detail := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t", cp.ID))(t)
		if cp.Messages != len(detail.History) && cp.Run == "r2" {
			t.Errorf("checkpoint %s counts %d messages, its history has %d", cp.ID, cp.Messages, len(detail.History))
		}
	}
}

// TestResumedRunKeepsItsEnd: a run that a thread went back into, and that another run
// continues, still ends where it ended.
func TestResumedRunKeepsItsEnd(t *testing.T) {
	e, _ := looptest.Travelled(t)
	key := store.ThreadKey{Tenant: "acme", Thread: "t"}
	before := looptest.Must((thread.Reader{Store: e.Store}).RunEnd(t.Context(), key, "r1"))(t)
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r2", looptest.UserSays("u2", "more")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "t")[1].ID}))(t)
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r3"))
	after := looptest.Must((thread.Reader{Store: e.Store}).RunEnd(t.Context(), key, "r1"))(t)
	if after.Last != before.Last || after.Outcome != before.Outcome || after.ContinuedBy != "r3" {
		t.Errorf("the first run ended as %+v, and now as %+v", before, after)
	}
}

// TestRewindTearsNothingApart: a thread cannot go back to a message whose calls are open, and
// goes back to one whose results come after reasoning together with the results.
func TestRewindTearsNothingApart(t *testing.T) {
	front := holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("ask_browser", "{}"), holdfast.Delta{Text: "done"}),
	}
	e := looptest.Start(t, memstore.New(), nil, front)
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
	in.Tools = []agui.Tool{{Name: "ask_browser", Description: "asks", Parameters: json.RawMessage(`{}`)}}
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	looptest.Collect(t, reply, err)
	raw := looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
	asks := looptest.Must(agui.DecodeMessage(raw[len(raw)-1]))(t)
	if _, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Message: asks.ID}); looptest.Code(err) != codes.InvalidInput {
		t.Errorf("to a message with open calls: %v", err)
	}
	h := thread.NewHistory()
	for _, m := range []holdfast.Message{
		{ID: "u", Role: holdfast.RoleUser},
		{ID: "a", Role: holdfast.RoleAssistant, Calls: []holdfast.ToolCall{{ID: "c"}, {ID: "d"}}},
		{ID: "th", Role: holdfast.RoleReasoning}, {ID: "t1", Role: holdfast.RoleTool, CallID: "c"},
		{ID: "t2", Role: holdfast.RoleTool, CallID: "d"},
		{ID: "th2", Role: holdfast.RoleReasoning}, {ID: "b", Role: holdfast.RoleAssistant},
	} {
		h.Add(agui.FromDomain(m), nil)
	}
	for at, want := range map[int]int{0: 0, 1: 4, 2: 4, 3: 4, 4: 4, 5: 5, 6: 6} {
		if end, whole := h.WholeFrom(at); end != want || !whole {
			t.Errorf("from %d it is whole at %d, %v, want %d", at, end, whole, want)
		}
	}
}
