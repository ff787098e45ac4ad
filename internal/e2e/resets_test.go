package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// A server behind a slow link, whose connections to Redis are reset once a second. It lives, and is
// there again a few round trips later; nobody should take its runs over. When it really dies, they
// are to be taken over as soon as that can be told from a reset.

const (
	// resets are those in CI, and resetDelay that of their link; make resets sets another number, and
	// tries all delays.
	resets     = 3
	resetDelay = 20 * time.Millisecond
	// robbedMost is how many takeovers from the living are allowed in resetsBar resets.
	robbedMost = 1
	resetsBar  = 50
	// slowTrips is how many round trips of its own a death may take longer to be noticed.
	slowTrips = 4
)

// TestResets: a server whose connections are reset keeps its runs, however slow its link is.
// In CI a few resets and a death show that runs go on, at any server; a late one there says
// nothing.
func TestResets(t *testing.T) {
	t.Parallel()
	measured := os.Getenv("HOLDFAST_RESETS") != ""
	n, delays, deaths := setting(t, "HOLDFAST_RESETS", resets), []time.Duration{resetDelay}, 1
	if measured {
		delays, deaths = []time.Duration{0, 5 * time.Millisecond, resetDelay, 100 * time.Millisecond}, max(n/5, 1)
	}
	table := []string{
		"| one way | resets | takeovers from the living | deaths (kill -9) | p50 | p99 |",
		"|---|---|---|---|---|---|",
	}
	for _, oneWay := range delays {
		f := newSlowFleet(t, oneWay)
		robbed := f.resets(n)
		took := f.kills(deaths)
		table = append(table, fmt.Sprintf("| %s | %d | %d | %d | %s | %s |", oneWay, n, robbed, deaths, took.at(50),
			took.at(99)))
		if measured && robbed*resetsBar > robbedMost*max(n, resetsBar) {
			t.Errorf("one way takes %s: %d runs were taken from a living server in %d resets", oneWay, robbed, n)
		}
		more := slowTrips * 2 * oneWay
		if measured && (took.at(50) > killMedian+more || took.at(99) > killWorst+more) {
			t.Errorf("one way takes %s: a takeover takes %s, at worst %s", oneWay, took.at(50), took.at(99))
		}
		f.stop()
	}
	t.Logf("\n%s", strings.Join(table, "\n"))
}

// slowFleet is three servers, of which the first one is behind a slow link.
type slowFleet struct {
	*fleet
	link *link
	runs int
}

func newSlowFleet(t *testing.T, oneWay time.Duration) *slowFleet {
	redis := redistest.Start(t)
	f := &slowFleet{
		fleet: &fleet{T: t, store: redis.URL(), lease: 3 * time.Second},
		link:  startLink(t, redis.Addr, oneWay),
	}
	f.args = []string{"--lease=3s", "--demo-delay=10ms"}
	for i := range 3 {
		f.addrs = append(f.addrs, redistest.FreeAddr(t))
		f.journals = append(f.journals, filepath.Join(t.TempDir(), fmt.Sprint("journal", i)))
		f.servers = append(f.servers, nil)
		f.begins(i)
	}
	return f
}

// begins starts a server, the first one behind the link.
func (f *slowFleet) begins(i int) {
	f.Helper()
	store := f.store
	if i == 0 {
		store = f.link.URL()
	}
	f.servers[i] = start(f.T, f.addrs[i], store, append(f.args[:2:2], "--demo-journal="+f.journals[i])...)
}

// stop kills all servers.
func (f *slowFleet) stop() {
	for _, s := range f.servers {
		s.kill()
	}
}

// taken counts the runs that the other servers have taken over.
func (f *slowFleet) taken() (n int) {
	for _, s := range f.servers[1:] {
		n += strings.Count(s.out.String(), "takeover=true")
	}
	return n
}

// resets resets the connections of the first server n times, a second apart, while it has runs, and
// returns how many of these were taken from it.
func (f *slowFleet) resets(n int) (robbed int) {
	f.Helper()
	f.fill(4)
	wait.Pass(1500 * time.Millisecond) // it has renewed its lease, and the others know that it has runs
	for range n {
		f.link.Reset()
		wait.Pass(time.Second)
		if more := f.taken() - robbed; more > 0 {
			robbed += more
			f.fill(more)
			wait.Pass(1500 * time.Millisecond)
		}
	}
	return robbed
}

// fill begins runs at the first server.
func (f *slowFleet) fill(n int) {
	f.Helper()
	for range n {
		f.runs++
		f.begin(fmt.Sprint("run", f.runs), 0, "plan 5000 steps")
	}
}

// kills kills the first server n times, and returns how long it takes until a run of it goes on
// elsewhere.
func (f *slowFleet) kills(n int) (took durations) {
	f.Helper()
	for i := range n {
		r := f.ride(fmt.Sprint("kill", i), 0)
		wait.Pass(1500 * time.Millisecond)
		for len(r.seen) > 0 {
			r.next()
		}
		begun := time.Now()
		f.servers[0].kill()
		_, first := r.takenOver()
		took = append(took, first.at.Sub(begun))
		r.over()
		f.begins(0)
	}
	return took
}
