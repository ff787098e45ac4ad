package fleet

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/indexing"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/redis/go-redis/v9"
)

// mostCommands is how many commands a second an idle fleet of 300 servers makes, at most, and
// flatWithin how much more they may be beside ten times as many owned threads.
const (
	mostCommands = 2000
	flatWithin   = 1.1
)

// TestIdle: what a fleet in which nothing happens costs Redis does not depend on how many runs there
// are.
func TestIdle(t *testing.T) {
	servers, owners := either(6, 290), either(2, 10)
	most := mostCommands * float64(servers+owners) / 300
	took := map[int]float64{}
	heads := []int{either(40, 3000), either(400, 30_000)}
	for _, n := range heads {
		took[n] = idle(t, servers, owners, n)
	}
	if !measured() {
		// A window of CI is short, and the machine busy: what each head would cost shows nevertheless.
		most, heads[1] = 100*float64(servers+owners), heads[0]
	}
	if got := took[slices.Max(slices.Collect(maps.Keys(took)))]; got > most {
		t.Errorf("%d servers make %.0f commands a second, the bar is %.0f", servers+owners, got, most)
	}
	if took[heads[1]] > flatWithin*took[heads[0]] {
		t.Errorf("beside %d heads they are %.0f, and beside %d %.0f", heads[1], took[heads[1]], heads[0],
			took[heads[0]])
	}
}

// idle returns the commands a second of a fleet.
func idle(t *testing.T, servers, owners, heads int) (commands float64) {
	r := redistest.Start(t)
	own(t, r, owners, heads)
	s, _ := open(t, r, 1)
	looptest.Must(s.Progress(t.Context(), indexing.Completed()))(t) // no walk is under way
	agent := holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "hello"})}
	for range servers {
		join(t, r, 4, agent, observe.Observer{})
	}
	c := redis.NewClient(&redis.Options{Addr: r.Addr, Protocol: 2})
	defer c.Close()
	window := time.Duration(either(1, 30)) * time.Second
	wait.Pass(time.Duration(either(0, 15)) * time.Second) // for what servers do at first
	before, begun, cpu := stats(t, c, "commandstats", "stats", "cpu"), time.Now(), used()
	wait.Pass(window)
	after, lasted := stats(t, c, "commandstats", "stats", "cpu"), time.Since(begun).Seconds()
	cpu = used() - cpu
	per := func(name string) float64 { return (after[name] - before[name]) / lasted }
	names := slices.Sorted(maps.Keys(after))
	for _, name := range names {
		if calls := per(name); len(name) > 6 && name[:6] == "calls " {
			commands += calls
			if calls > 0.5 {
				t.Logf("%6.0f %s a second", calls, name[6:])
			}
		}
	}
	say("| %d servers, %d owned heads | %.0f | %.0f | %.1f %% | %.0f KB/s | %.2f %% |", servers+owners, heads,
		commands, per("total_commands_processed"), 100*(per("used_cpu_user")+per("used_cpu_sys")),
		(per("total_net_input_bytes")+per("total_net_output_bytes"))/1000, 100*cpu.Seconds()/lasted/float64(servers))
	return commands
}
