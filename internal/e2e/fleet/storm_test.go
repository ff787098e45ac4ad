package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// TestStorm: the calls that takeovers repeat do not all come at once. A provider that allows so many
// calls a second gets at most half as many more in any second, and refuses as many as for a tenth of the
// runs; all of these end well. Only make fleet runs it: packages pace and loop test it in virtual time.
func TestStorm(t *testing.T) {
	if !measured() {
		t.Skip("only make fleet runs it")
	}
	const servers, runs, allows = 5, 500, 100
	c := newCrew(t, servers, runs)
	wait.Pass(2 * lease)
	c.model.mu.Lock()
	c.model.slow, c.model.allows = false, allows
	c.model.mu.Unlock()
	begun := time.Now()
	c.kill(0)
	wait.Until(t, "the ends of the runs that were taken over", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		good := 0
		for thread := range c.taken {
			good += min(c.ended[thread], 1)
		}
		return good == runs
	})
	took := time.Since(begun).Round(10 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	var calls []time.Time
	for thread := range c.taken {
		calls = append(calls, c.model.calls[thread][1:]...)
	}
	slices.SortFunc(calls, time.Time.Compare)
	most, from := 0, 0
	for to := range calls {
		for calls[to].Sub(calls[from]) > time.Second {
			from++
		}
		most = max(most, to-from+1)
	}
	say("| %d runs of one of %d servers, %d calls allowed | %d | %d | %s |", runs, servers, allows, most, c.model.no,
		took)
	if most > allows*3/2 || c.model.no > runs/10 {
		t.Errorf("the provider, which allows %d calls a second, gets %d in one, and refuses %d", allows, most,
			c.model.no)
	}
}
