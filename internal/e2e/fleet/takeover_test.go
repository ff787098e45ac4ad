package fleet

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/redis/go-redis/v9"
)

// The bars: how soon after the death of one of ten servers the first and the last of its 1,000 runs go
// on, and how much later beside the runs of others.
const (
	firstWithin  = 100 * time.Millisecond
	lastWithin   = time.Second
	besideWithin = 10 * time.Millisecond
)

// provider is a model that is slow, or that allows so many calls a second. It notes who asks it.
type provider struct {
	mu sync.Mutex
	// slow means that nobody is answered before answer is closed.
	slow   bool
	answer chan struct{}
	allows int
	calls  map[string][]time.Time // when each thread asked
	let    []time.Time            // those that were let in
	no     int                    // those that were refused
}

func newProvider() *provider {
	return &provider{slow: true, answer: make(chan struct{}), calls: map[string][]time.Time{}}
}

// begin notes a call, and returns whether it is refused, and whether it must wait.
func (p *provider) begin(thread string) (refused, slow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.calls[thread] = append(p.calls[thread], now)
	if p.allows > 0 {
		for len(p.let) > 0 && now.Sub(p.let[0]) > time.Second {
			p.let = p.let[1:]
		}
		if len(p.let) >= p.allows {
			p.no++
			return true, false
		}
		p.let = append(p.let, now)
	}
	return false, p.slow
}

// Stream implements [holdfast.Model].
func (p *provider) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		refused, slow := p.begin(req.Thread)
		if refused {
			yield(holdfast.Delta{}, &holdfast.ModelError{
				Kind:       failure.Rate,
				Retryable:  true,
				RetryAfter: time.Second,
				Err:        fmt.Errorf("more than %d calls a second", p.allows),
			})
			return
		}
		if slow {
			select {
			case <-ctx.Done():
				yield(holdfast.Delta{}, context.Cause(ctx))
				return
			case <-p.answer:
			}
		}
		yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
	}
}

// crew is a fleet whose servers have runs.
type crew struct {
	*testing.T
	redis   *redistest.Server
	model   *provider
	members []*member
	killed  time.Time // when the last one was

	mu    sync.Mutex
	taken map[string][]time.Time // when each thread was taken over, after the last death
	moved map[string]int         // how often each one was
	ended map[string]int         // how often each run has ended well
}

// newCrew starts a fleet in which each server has runs.
func newCrew(t *testing.T, servers, runs int) *crew {
	c := &crew{
		T:     t,
		redis: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec"),
		model: newProvider(),
		taken: map[string][]time.Time{},
		moved: map[string]int{},
		ended: map[string]int{},
	}
	seen := observe.Observer{
		TakenOver: func(at holdfast.Iteration, result observe.TakeoverResult, _ string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if result == observe.TakeoverDone {
				c.taken[at.Thread] = append(c.taken[at.Thread], time.Now())
			}
		},
		RunEnded: func(at holdfast.Iteration, outcome holdfast.Outcome, _ string, _ time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if outcome == holdfast.OutcomeSuccess {
				c.ended[at.Thread]++
			}
		},
	}
	for range servers {
		c.members = append(c.members, join(t, c.redis, 16, holdfast.Agent{Name: "a", Model: c.model}, seen))
	}
	for n, m := range c.members {
		routine.Each(runs, atOnce, func(i int) {
			thread := fmt.Sprintf("t%d-%d", n, i)
			in := looptest.RunInput(thread, "r", looptest.UserSays("u", "go"))
			if _, err := m.Owner.Post(t.Context(), looptest.Alice, "", in); err != nil {
				t.Errorf("%s: %v", thread, err)
			}
		})
	}
	wait.Until(t, "all runs", func() bool { return c.asked() == servers*runs })
	return c
}

// asked returns how many threads have asked the model.
func (c *crew) asked() int {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	return len(c.model.calls)
}

// kill kills a server, and returns how long after that each of its runs was taken over.
func (c *crew) kill(n int) (took []time.Duration) {
	c.Helper()
	runs := c.members[n].Owner.Running()
	c.mu.Lock()
	clear(c.taken)
	c.mu.Unlock()
	begun := time.Now()
	c.killed = begun
	c.members[n].wire.cut()
	wait.Until(c.T, "the takeover of all runs", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.taken) == runs
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for thread, times := range c.taken {
		took = append(took, times[0].Sub(begun))
		c.moved[thread]++
		if len(times) != 1 {
			c.Errorf("%s was taken over %d times", thread, len(times))
		}
	}
	slices.Sort(took)
	return took
}

// percentile returns that of sorted times.
func percentile(took []time.Duration, percent int) time.Duration {
	return took[(len(took)*percent+99)/100-1].Round(100 * time.Microsecond)
}

// TestDeath: the runs of a server that dies go on at the others, each once, and soon, however many runs
// others have.
//
// Ten servers on two cores spread the 99th percentile of one death by more than the bar for what others'
// heads may add to it. So fleets beside owners that have such heads, and beside as many that have none, take
// turns, and the difference of their means is told with its standard error.
//
// The ten are one process, with the memory of all their runs. Collecting its garbage takes both cores for 0.3 s,
// which one server with its own runs does in a tenth of that time. In every third death it would happen, so each
// begins right after a collection.
func TestDeath(t *testing.T) {
	beside := either(60, 10_000)
	none, among := &sample{}, &sample{}
	for range either(1, 5) {
		t.Run("beside none", func(t *testing.T) { none.add(deaths(t, 0)...) })
		t.Run("beside heads", func(t *testing.T) { among.add(deaths(t, beside)...) })
	}
	late, spread := among.mean()-none.mean(), math.Hypot(among.deviation(), none.deviation())
	t.Logf("beside %d heads, the 99th percentile of %d deaths is %.0f ms later than beside none (± %.0f ms; bar %d)",
		beside, len(*among), late, spread, besideWithin.Milliseconds())
	if measured() && late-2*spread > float64(besideWithin.Milliseconds()) {
		t.Errorf("beside %d heads the 99th percentile is later, and that is no accident", beside)
	}
}

// sample is what was measured several times, in milliseconds.
type sample []float64

func (s *sample) add(took ...time.Duration) {
	for _, d := range took {
		*s = append(*s, d.Seconds()*1000)
	}
}

func (s *sample) mean() (mean float64) {
	for _, ms := range *s {
		mean += ms / float64(len(*s))
	}
	return mean
}

// deviation is the standard error of the mean.
func (s *sample) deviation() float64 {
	mean, squares := s.mean(), 0.0
	for _, ms := range *s {
		squares += (ms - mean) * (ms - mean)
	}
	n := float64(len(*s))
	return math.Sqrt(squares / max(n-1, 1) / n)
}

// deaths kills servers of a new fleet beside so many heads of others, and returns the 99th percentile of
// each death.
func deaths(t *testing.T, beside int) (late []time.Duration) {
	t.Helper()
	servers, runs := either(4, 10), either(12, 1000)
	c := newCrew(t, servers, runs)
	own(t, c.redis, either(1, 10), beside)
	wait.Pass(time.Duration(either(0, 5)) * time.Second) // for a fleet that is at rest
	client := redis.NewClient(&redis.Options{Addr: c.redis.Addr, Protocol: 2})
	defer client.Close()
	for n := range either(1, 3) {
		runtime.GC()
		before, cpu := stats(t, client, "cpu", "stats"), used()
		all := c.kill(n)
		cpu = used() - cpu
		after := stats(t, client, "cpu", "stats")
		spent := after["used_cpu_user"] + after["used_cpu_sys"] - before["used_cpu_user"] - before["used_cpu_sys"]
		say("| %d runs each, beside %d heads | %s | %s | %s | %s | %s | %.0f ms | %.0f ms | %.0f |", runs, beside,
			percentile(all, 1), percentile(all, 50), percentile(all, 99), percentile(all, 100),
			c.awaitCalls().Round(time.Millisecond), float64(cpu.Milliseconds()), 1000*spent,
			after["total_commands_processed"]-before["total_commands_processed"])
		late = append(late, percentile(all, 99))
		if measured() && (all[0] > firstWithin || all[len(all)-1] > lastWithin) {
			t.Errorf("the first run goes on after %s, the last one after %s", all[0], all[len(all)-1])
		}
	}
	c.finish()
	return late
}

// each returns whether f holds for all threads that were taken over.
func (c *crew) each(f func(thread string, moved int) bool) func() bool {
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.model.mu.Lock()
		defer c.model.mu.Unlock()
		for thread, moved := range c.moved {
			if !f(thread, moved) {
				return false
			}
		}
		return true
	}
}

// awaitCalls waits until the runs that were taken over have repeated their calls, which have turns, and
// returns how long after the last death that was.
func (c *crew) awaitCalls() (took time.Duration) {
	c.Helper()
	wait.Until(c.T, "the calls of the next owners", c.each(func(thread string, moved int) bool {
		if len(c.model.calls[thread]) <= moved {
			return false
		}
		took = max(took, c.model.calls[thread][moved].Sub(c.killed))
		return true
	}))
	return took
}

// finish has the model answer, and checks that the runs that were taken over end well, once, and have
// asked it once more for each takeover.
func (c *crew) finish() {
	c.Helper()
	close(c.model.answer)
	wait.Until(c.T, "the ends of the runs that were taken over", c.each(func(thread string, _ int) bool {
		return c.ended[thread] > 0
	}))
	c.each(func(thread string, moved int) bool {
		if n := len(c.model.calls[thread]); n != 1+moved || c.ended[thread] != 1 {
			c.Errorf("%s, taken over %d times, has asked the model %d times, and ended %d times", thread, moved, n,
				c.ended[thread])
		}
		return true
	})()
}
