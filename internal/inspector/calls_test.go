package inspector_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// worker calls four tools at once: a pure one, one that waits for the gate, one that must not
// run twice and waits too, and one that asks a person. keys has the keys that they were
// called with.
func worker(gate <-chan struct{}, keys *sync.Map) holdfast.Agent {
	tool := func(name string, effect holdfast.Effect, waits bool) holdfast.Tool {
		return looptest.Tool(name, effect, func(ctx context.Context) (string, error) {
			call := holdfast.CallFrom(ctx)
			if waits {
				select {
				case <-gate:
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			if name == "ask" && call.Answer == nil {
				return "", &holdfast.Interrupt{Message: "Sure?"}
			}
			keys.Store(name, call.Key)
			return name + " done", nil
		})
	}
	calls := holdfast.Delta{Finish: holdfast.FinishToolCalls}
	deltas := []holdfast.Delta{}
	for i, name := range []string{"look", "slow", "pay", "ask"} {
		deltas = append(deltas, holdfast.Delta{Call: &holdfast.CallDelta{Index: i, ID: "c-" + name, Name: name,
			Arguments: "{}"}})
	}
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Slowly(append(deltas, calls), []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}}),
		Tools: []holdfast.Tool{
			tool("look", holdfast.EffectPure, false),
			tool("slow", holdfast.EffectIdempotent, true),
			tool("pay", holdfast.EffectOnce, true),
			tool("ask", holdfast.EffectIdempotent, false),
		},
	}
}

// states returns how far calls have come.
func states(w *threads.Work) string {
	var out []string
	for _, c := range w.Calls {
		out = append(out, fmt.Sprintf("%s:%s:%s:%d", c.Tool, c.State, c.Effect, c.Attempts))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestWork: while calls are under way, one sees which have started, which have a result that
// no checkpoint holds, and which wait; and after their process has died, which are in doubt.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		mortal := &looptest.Mortal{Store: memstore.New()}
		keys := &sync.Map{}
		one := looptest.Start(t, mortal, nil, worker(gate, keys))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		work := looptest.Must(of(one).Work(t.Context(), looptest.Alice, "t"))(t)
		if got, want := states(work), "ask:waiting:idempotent:0 look:recorded:pure:1 pay:started:once:1 "+
			"slow:started:idempotent:1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if work.Run != "r1" || work.Status != threads.StatusRunning || work.Process == "" || work.Epoch != 1 ||
			work.Iteration != 0 {
			t.Errorf("%+v", work)
		}
		for _, c := range work.Calls {
			switch {
			case c.State == threads.CallRecorded &&
				(string(c.Result) != `"look done"` || c.Message == "" || c.EndedAt.IsZero()),
				c.State == threads.CallWaiting && c.Interrupt == "",
				c.State == threads.CallStarted && (c.Key == "" || c.StartedAt.IsZero()):
				t.Errorf("%+v", c)
			}
		}
		mortal.Dead.Store(true)
		other := looptest.Start(t, mortal.Store, nil, worker(gate, keys))
		time.Sleep(10 * time.Second)
		work = looptest.Must(of(other).Work(t.Context(), looptest.Alice, "t"))(t)
		if got, want := states(work), "ask:waiting:idempotent:0 look:recorded:pure:1 pay:recorded:once:1 "+
			"slow:started:idempotent:2"; got != want {
			t.Errorf("after the takeover: %s, want %s", got, want)
		}
		if work.Epoch != 2 {
			t.Errorf("%+v", work)
		}
		close(gate)
		time.Sleep(time.Second)
		work = looptest.Must(of(other).Work(t.Context(), looptest.Alice, "t"))(t)
		if work.Status != threads.StatusInterrupted || work.Process != "" ||
			!strings.Contains(states(work), "ask:waiting:") {
			t.Errorf("while it asks: %+v", work)
		}
		if _, err := of(other).Work(t.Context(), bob, "t"); looptest.Code(err) != codes.NotFound {
			t.Errorf("somebody else: %v", err)
		}
	})
}

// overtaken is a store that does something before intents are read for the first time.
type overtaken struct {
	store.Store
	by sync.Once
	do func()
}

func (o *overtaken) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	if kind == store.KindIntent {
		o.by.Do(o.do)
	}
	return o.Store.Values(ctx, key, kind, before, limit)
}

// TestWorkMeanwhile: a call whose result gets into a checkpoint while the work is read is not
// shown as one that has yet to start.
func TestWorkMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		slow := looptest.Tool("slow", holdfast.EffectOnce, func(context.Context) (string, error) {
			<-gate
			return "done", nil
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("slow", "{}"), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{slow},
		})
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		in := inspector.New(inspector.Config{Store: &overtaken{Store: e.Store, do: func() {
			close(gate)
			time.Sleep(time.Second)
		}}, Tools: e.Owner.Tools, Runs: e.Keeper.Runs})
		work := looptest.Must(in.Work(t.Context(), looptest.Alice, "t"))(t)
		if got := states(work); got != "" || work.Status != threads.StatusIdle {
			t.Errorf("%s, %q", work.Status, got)
		}
	})
}

// TestWorkInDoubt: a call whose process is gone, and which nobody goes on with, is in doubt.
func TestWorkInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		defer close(gate)
		mortal := &looptest.Mortal{Store: memstore.New()}
		one := looptest.Start(t, mortal, nil, worker(gate, &sync.Map{}))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		mortal.Dead.Store(true)
		other := looptest.Start(t, mortal.Store, func(c *looptest.Config) { c.Recover = false },
			worker(gate, &sync.Map{}))
		time.Sleep(10 * time.Second)
		work := looptest.Must(of(other).Work(t.Context(), looptest.Alice, "t"))(t)
		if got, want := states(work), "ask:waiting:idempotent:0 look:recorded:pure:1 pay:in_doubt:once:1 "+
			"slow:in_doubt:idempotent:1"; got != want || work.Status != threads.StatusStopped {
			t.Errorf("%s, want %s; %+v", got, want, work)
		}
	})
}

// shown returns calls in short.
func shown(list *threads.CallList) (out []string) {
	for _, c := range list.Calls {
		out = append(out, fmt.Sprintf("%s %s %s %d %v %v", c.Tool, c.Run, c.Effect, c.Attempts, c.Failed,
			c.EndedAt.Sub(c.StartedAt) >= 0))
	}
	return out
}

// TestCalls: each call that a thread has made, with the key that its tool got, how often it
// was started, and by whom; the same before and after its log is archived.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		mortal, keys := &looptest.Mortal{Store: memstore.New()}, &sync.Map{}
		one := looptest.Start(t, mortal, nil, worker(gate, keys))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		early := looptest.Must(of(one).Calls(t.Context(), looptest.Alice, "t", "r1", "", 10))(t)
		if len(early.Calls) != 4 || early.Calls[1].Attempts != 1 || early.Calls[1].Key == "" ||
			early.Calls[1].StartedAt.IsZero() || !early.Calls[1].EndedAt.IsZero() || early.Calls[0].Result == "" {
			t.Errorf("while they run: %+v", early.Calls)
		}
		mortal.Dead.Store(true)
		e := looptest.Start(t, mortal.Store, nil, worker(gate, keys))
		time.Sleep(10 * time.Second)
		close(gate)
		time.Sleep(time.Second)
		question := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).Interrupts[0].ID
		time.Sleep(time.Minute)
		in := looptest.RunInput("t", "r2")
		in.Resume = []agui.ResumeEntry{{InterruptID: question, Status: agui.ResumeResolved}}
		looptest.Posted(t, e, in)
		want := []string{
			"look r1 pure 1 false true",
			"slow r1 idempotent 2 false true",
			"pay r1 once 1 true true",
			"ask r1 idempotent 1 false true",
		}
		for _, when := range []string{"live", "archived"} {
			list := looptest.Must(of(e).Calls(t.Context(), looptest.Alice, "t", "", "", 10))(t)
			if got := shown(list); !slices.Equal(got, want) || list.Next != "" {
				t.Errorf("%s: %q, next %q, want %q", when, got, list.Next, want)
			}
			run := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "r2", 1))(t)[0]
			for _, c := range list.Calls {
				got, _ := keys.Load(c.Tool)
				if c.Tool != "pay" && c.Key != got || c.Message == "" || c.Result == "" {
					t.Errorf("%s: %+v; the tool had the key %s", when, c, got)
				}
				if c.Tool == "look" && c.Process != run.Processes[0].Process ||
					c.Tool == "slow" && c.Process != run.Processes[1].Process {
					t.Errorf("%s: %s was finished by %s: %+v", when, c.Tool, c.Process, run.Processes)
				}
				if c.Tool == "ask" && c.EndedAt.Sub(c.StartedAt) > time.Second {
					t.Errorf("%s: the time that a person took counts: %+v", when, c)
				}
			}
			last := looptest.Must(of(e).Calls(t.Context(), looptest.Alice, "t", "", "", 1))(t)
			if got := shown(last); len(got) != 1 || got[0] != "ask  idempotent 1 false true" || last.Next != "r2" ||
				last.Calls[0].Key != "" {
				t.Errorf("%s, the last run: %q, next %q", when, got, last.Next)
			}
			if first := looptest.Must(of(e).Calls(t.Context(), looptest.Alice, "t", "", last.Next,
				1))(t); len(first.Calls) != 4 || first.Next != "" {
				t.Errorf("%s, the first run: %q, next %q", when, shown(first), first.Next)
			}
			time.Sleep(2 * time.Minute)
		}
		fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread.ID
		if list := looptest.Must(of(e).Calls(t.Context(), looptest.Alice, fork, "", "",
			10))(t); len(list.Calls) != 0 || list.Calls == nil {
			t.Errorf("a fork has made %+v", list.Calls)
		}
		for _, ask := range [][2]string{{"t9", "r1"}, {"t", "r9"}} {
			if _, err := of(e).Calls(t.Context(), looptest.Alice, ask[0], ask[1], "",
				1); looptest.Code(err) != codes.NotFound {
				t.Errorf("%q: %v", ask, err)
			}
		}
	})
}

// TestCallsOfTheFrontend: what the client runs has no key; a result that came with its request
// is found, and one that nobody gave was never started.
func TestCallsOfTheFrontend(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: looptest.TwoCalls("front", "gone")})
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
	in.Tools = []agui.Tool{{Name: "front"}}
	looptest.Posted(t, e, in)
	list := looptest.Must(of(e).Calls(t.Context(), looptest.Alice, "t", "", "", 10))(t)
	if got := shown(list); len(got) != 2 || list.Calls[0].Effect != "frontend" || list.Calls[0].Key != "" ||
		list.Calls[1].Effect != "unknown" || list.Calls[1].Attempts != 0 {
		t.Errorf("%+v", list.Calls)
	}
	work := looptest.Must(of(e).Work(t.Context(), looptest.Alice, "t"))(t)
	if len(work.Calls) == 0 || work.Calls[0].State != threads.CallWaiting || work.Calls[0].Effect != "frontend" ||
		work.Calls[0].Key != "" {
		t.Errorf("%+v", work)
	}
	in = looptest.RunInput("t", "r2", agui.Message{ID: "m9", Role: "tool", ToolCallID: list.Calls[0].ID,
		Content: []byte(`"clicked"`)})
	looptest.Posted(t, e, in)
	if list = looptest.Must(of(e).Calls(t.Context(), looptest.Alice, "t", "r1", "",
		10))(t); list.Calls[0].Result != "m9" {
		t.Errorf("after its result: %+v", list.Calls)
	}
}

// broken is a store of which a kind of values cannot be read.
type broken struct {
	store.Store
	kind store.Kind
	data []byte
}

func (b *broken) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	if kind == b.kind {
		return []store.Value{{Kind: kind, ID: "x", Data: b.data}}, nil
	}
	return b.Store.Values(ctx, key, kind, before, limit)
}

// TestDamage: what is damaged is an error, and no panic.
func TestDamage(t *testing.T) {
	e, _ := looptest.Travelled(t)
	in := inspector.New(inspector.Config{
		Store: &broken{e.Store, store.KindIntent, []byte("{")},
		Tools: e.Owner.Tools,
		Runs:  e.Keeper.Runs,
	})
	if _, err := in.Work(t.Context(), looptest.Alice, "t"); looptest.Code(err) != codes.CheckpointUnreadable {
		t.Errorf("work: %v", err)
	}
	if _, err := in.Calls(t.Context(), looptest.Alice, "t", "", "",
		1); looptest.Code(err) != codes.CheckpointUnreadable {
		t.Errorf("calls: %v", err)
	}
}
