package loop_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// crowded is a model that answers so many calls of a server, and then asks to wait.
type crowded struct {
	mu      sync.Mutex
	answers int
	after   time.Duration
	refused int
	asked   map[string]int // how often, by thread
}

// Stream implements [holdfast.Model].
func (m *crowded) Stream(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		m.mu.Lock()
		m.asked[req.Thread]++
		m.answers--
		refuses := m.answers < 0
		if refuses {
			m.refused++
		}
		m.mu.Unlock()
		if refuses {
			yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.Rate, Retryable: true, RetryAfter: m.after,
				Err: context.DeadlineExceeded})
			return
		}
		yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
	}
}

// waiting returns the threads that have not asked.
func (m *crowded) waiting(runs int) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range runs {
		if id := fmt.Sprint("t", i); m.asked[id] == 0 {
			list = append(list, id)
		}
	}
	return list
}

// outlived starts a server, which goes on with so many runs of one that has died, and waits until the
// model has refused one of them. others are the models that its agent may ask besides.
func outlived(t *testing.T, shared *memstore.Store, runs int, m *crowded, others ...holdfast.Model) *looptest.Engine {
	t.Helper()
	asleep := holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			<-ctx.Done()
			yield(holdfast.Delta{}, context.Cause(ctx))
		}
	})
	mortal := &looptest.Mortal{Store: shared}
	dying := looptest.Start(t, mortal, nil, holdfast.Agent{Name: "a", Model: asleep})
	for i := range runs {
		in := looptest.RunInput(fmt.Sprint("t", i), "r1", looptest.UserSays("u1", "go"))
		if _, err := dying.Owner.Post(t.Context(), looptest.Alice, "", in); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	mortal.Dead.Store(true)
	known := circuit.New(circuit.Config{
		Models: []circuit.Model{{Key: "custom/a", Provider: "custom", Model: "a"}},
		Log:    slog.New(slog.DiscardHandler),
		Now:    time.Now,
	})
	e := looptest.Start(t, shared, func(c *looptest.Config) { c.Circuit = known },
		holdfast.Agent{Name: "a", Model: m, Fallbacks: others})
	for refused := 0; refused == 0; {
		time.Sleep(time.Millisecond)
		m.mu.Lock()
		refused = m.refused
		m.mu.Unlock()
	}
	synctest.Wait()
	return e
}

// TestTurns: of many runs that are taken over, the first ones repeat their model calls at once. The
// others wait for their turns, and for what the provider asks to wait; meanwhile each can be cancelled,
// and new runs begin. All end well.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs, answers = 90, 70
		m := &crowded{answers: answers, after: 20 * time.Second, asked: map[string]int{}}
		e := outlived(t, memstore.New(), runs, m)
		wait := m.waiting(runs)
		if n := len(wait); n < runs-answers-5 || n >= runs-answers {
			t.Errorf("%d runs wait", n)
		}
		time.Sleep(10 * time.Second)
		m.mu.Lock()
		m.answers = runs
		m.mu.Unlock()
		if n := len(m.waiting(runs)); n != len(wait) {
			t.Errorf("%d of %d runs wait although the provider has asked to wait", n, len(wait))
		}
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, wait[0], "r1"))(t)
		looptest.Succeeded(t, looptest.Started(t, e, "new"))
		synctest.Wait()
		if n := e.Owner.Running(); n != runs-answers-1 {
			t.Errorf("%d runs go on, want all but the one that was cancelled", n)
		}
		time.Sleep(15 * time.Second)
		if left := m.waiting(runs); len(left) != 1 || left[0] != wait[0] || e.Owner.Running() > 0 {
			t.Errorf("%q have not asked, and %d runs go on", left, e.Owner.Running())
		}
		for i := range runs {
			id := fmt.Sprint("t", i)
			got := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, id))(t)
			if got.Status != threads.StatusIdle || got.Code != "" {
				t.Errorf("%s: %+v", id, got)
			}
		}
	})
}

// TestTurnsEnd: a server that shuts down while runs wait for their turns hands them over at once.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 90
		shared := memstore.New()
		m := &crowded{answers: 70, after: 20 * time.Second, asked: map[string]int{}}
		e := outlived(t, shared, runs, m)
		begun := time.Now()
		if err := e.Shutdown(t.Context()); err != nil || time.Since(begun) > time.Second {
			t.Errorf("the shutdown took %s: %v", time.Since(begun), err)
		}
		m.mu.Lock()
		m.answers = runs
		m.mu.Unlock()
		looptest.Start(t, shared, nil, holdfast.Agent{Name: "a", Model: m})
		time.Sleep(time.Second)
		if left := m.waiting(runs); len(left) > 0 {
			t.Errorf("%q have not asked", left)
		}
	})
}

// TestTurnsElsewhere: runs that wait for a model ask another one, if they have any, as soon as the
// provider asks to wait for long.
func TestTurnsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs, answers = 90, 70
		m := &crowded{answers: answers, after: time.Minute, asked: map[string]int{}}
		other := &crowded{answers: runs, asked: map[string]int{}}
		e := outlived(t, memstore.New(), runs, m, other)
		waited := m.waiting(runs)
		time.Sleep(100 * time.Millisecond)
		if n, left := len(waited), m.waiting(runs); n == 0 || len(left) != n || e.Owner.Running() > 0 {
			t.Errorf("of %d runs that waited %d have another model; %d go on", n, len(left), e.Owner.Running())
		}
	})
}
