package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The tests of leases and departures. A departure may be missed, and is told soon rather than
// at once, so they say it again until it is heard.

// presenceTests test [store.Presence].
func presenceTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"announced and retired":   testRetire,
		"a lease runs out":        testExpire,
		"a lease is renewed":      testRenew,
		"a departure is told":     testOnDeparture,
		"a thread is handed over": testHandOver,
	}
}

func wantAlive(t *testing.T, s store.Store, process string, want bool) {
	t.Helper()
	if got := must(s.Lease(t.Context(), process))(t); got.Alive() != want || want && (got.Gone || got.Until.IsZero()) {
		t.Errorf("Lease(%q) is %+v, want one that is alive: %v", process, got, want)
	}
}

func announce(t *testing.T, s store.Store, process string, ttl time.Duration) {
	t.Helper()
	if err := s.Announce(t.Context(), process, ttl); err != nil {
		t.Fatalf("Announce: %v", err)
	}
}

func retire(t *testing.T, s store.Store, process string) {
	t.Helper()
	if err := s.Retire(t.Context(), process); err != nil {
		t.Fatalf("Retire: %v", err)
	}
}

func testRetire(t *testing.T, s store.Store) {
	wantAlive(t, s, "p", false)
	retire(t, s, "p")
	announce(t, s, "p", time.Hour)
	announce(t, s, "q", time.Hour)
	wantAlive(t, s, "p", true)
	wantAlive(t, s, "", false)
	retire(t, s, "p")
	wantAlive(t, s, "p", false)
	if got := must(s.Lease(t.Context(), "p"))(t); !got.Gone {
		t.Errorf("the lease of a process that has retired is %+v", got)
	}
	wantAlive(t, s, "q", true)
	announce(t, s, "p", time.Hour)
	wantAlive(t, s, "p", true)
}

// shortLease is the length of leases that tests let run out.
const shortLease = 50 * time.Millisecond

// await polls until something is so that no store signals.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	late := time.After(10 * time.Second)
	for tick := time.Tick(shortLease / 10); !so(); {
		select {
		case <-tick:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// awaitExpiry polls until the process's lease has run out, which no store signals.
func awaitExpiry(t *testing.T, s store.Store, process string) {
	t.Helper()
	await(t, "the end of a lease of "+shortLease.String(), func() bool {
		return !must(s.Lease(t.Context(), process))(t).Alive()
	})
}

func testExpire(t *testing.T, s store.Store) {
	announce(t, s, "long", time.Hour)
	begun := time.Now()
	announce(t, s, "short", shortLease)
	awaitExpiry(t, s, "short")
	if lived := time.Since(begun); lived < shortLease {
		t.Errorf("the lease of %s ran out after %s", shortLease, lived)
	}
	wantAlive(t, s, "long", true)
}

// testRenew: a process that was announced again outlives another process, whose equally
// long lease began later than its own first one.
func testRenew(t *testing.T, s store.Store) {
	announce(t, s, "p", shortLease)
	before := must(s.Lease(t.Context(), "p"))(t)
	announce(t, s, "other", shortLease)
	announce(t, s, "p", time.Hour)
	if after := must(s.Lease(t.Context(), "p"))(t); !after.Until.After(before.Until) || after.Left <= shortLease ||
		after.Left > time.Hour {
		t.Errorf("a renewal for an hour made the lease %+v, which was %+v", after, before)
	}
	awaitExpiry(t, s, "other")
	wantAlive(t, s, "p", true)
}

// departures listens for the process, and sends what it hears.
func departures(t *testing.T, s store.Store, process string) <-chan store.Departure {
	t.Helper()
	heard := make(chan store.Departure, 100)
	t.Cleanup(s.OnDeparture(process, func(d store.Departure) { heard <- d }))
	return heard
}

// heardOf returns the next departure of the process. A store may need a moment to listen, so
// that what it is told first may be missed: leave is repeated until it is heard.
func heardOf(t *testing.T, heard <-chan store.Departure, process string, leave func()) store.Departure {
	t.Helper()
	for range 100 {
		leave()
		late := time.After(100 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case d := <-heard:
				if d.Process == process {
					return d
				}
			case <-late:
				waiting = false
			}
		}
	}
	t.Fatalf("nobody was told that %s has left", process)
	return store.Departure{}
}

// testOnDeparture: the others are told of a process that retires, and find it gone.
func testOnDeparture(t *testing.T, s store.Store) {
	announce(t, s, "p", time.Hour)
	announce(t, s, "q", time.Hour)
	own, other := departures(t, s, "p"), departures(t, s, "q")
	if d := heardOf(t, other, "p", func() { retire(t, s, "p") }); d != (store.Departure{Process: "p", Retired: true}) {
		t.Errorf("a process that retires is told as %+v", d)
	}
	if l := must(s.Lease(t.Context(), "p"))(t); !l.Gone || l.Alive() {
		t.Errorf("the lease of a process that has left is %+v", l)
	}
	wantAlive(t, s, "q", true)
	heardOf(t, own, "q", func() { retire(t, s, "q") })
	stopped := make(chan store.Departure, 100)
	s.OnDeparture("r", func(d store.Departure) { stopped <- d })()
	announce(t, s, "p", time.Hour)
	heardOf(t, other, "p", func() { retire(t, s, "p") })
	for len(own) > 0 {
		if d := <-own; d.Process == "p" {
			t.Errorf("a process is told of its own departure: %+v", d)
		}
	}
	if len(stopped) > 0 {
		t.Errorf("a listener that has stopped is told %+v", <-stopped)
	}
}

// testHandOver: the others are told of a thread that is handed over, and at most one of
// them is the heir, which changes nothing that is stored.
func testHandOver(t *testing.T, s store.Store) {
	key := store.ThreadKey{Tenant: "a b/{c}", Thread: strings.Repeat("t %\x01é", 3)}
	processes := []string{"p one", "q/{two}", "r%20"}
	var heard []<-chan store.Departure
	for _, p := range processes {
		announce(t, s, p, time.Hour)
		heard = append(heard, departures(t, s, p))
	}
	leave := func() {
		if err := s.HandOver(t.Context(), processes[0], key); err != nil {
			t.Fatalf("HandOver: %v", err)
		}
	}
	heardOf(t, heard[1], processes[0], leave)
	heardOf(t, heard[2], processes[0], leave)
	// News that arrive while a listener reconnects are missed, which is allowed.
	for told, missed := 0, 0; told < 10; {
		drained(heard[1:])
		leave()
		heirs := 0
		for i, h := range heard[1:] {
			select {
			case d := <-h:
				if d.Process != processes[0] || d.Thread != key {
					t.Errorf("%s is told %+v", processes[i+1], d)
				}
				if d.Heir {
					heirs++
				}
				told++
			case <-time.After(5 * time.Second):
				if missed++; missed == 5 {
					t.Fatalf("%s is not told", processes[i+1])
				}
			}
		}
		if heirs > 1 {
			t.Error("two processes are the heir")
		}
	}
	if len(heard[0]) > 0 {
		t.Errorf("a process is told of its own departure: %+v", <-heard[0])
	}
	wantAlive(t, s, processes[0], true)
}

// drained takes out what was heard.
func drained(heard []<-chan store.Departure) {
	for _, h := range heard {
		for len(h) > 0 {
			<-h
		}
	}
}
