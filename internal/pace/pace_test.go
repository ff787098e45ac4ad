package pace_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/pace"
)

// server is one of so many.
type server struct {
	*pace.Lines
	of int
}

// servers returns one of so many servers.
func servers(n int) *server { return chosen(n, func() float64 { return 0 }) }

// chosen returns one of so many servers, with the luck that random gives it.
func chosen(n int, random func() float64) *server { return &server{pace.New(random), n} }

// Enter joins a line.
func (s *server) Enter(circuit string, others bool) *pace.Place {
	return s.Lines.Enter(circuit, s.of, others)
}

// Refused notes a refusal.
func (s *server) Refused(circuit string, after time.Duration) { s.Lines.Refused(circuit, s.of, after) }

// enter joins the line n times, and returns the places; those that need not wait have none.
func enter(ls *server, n int) (places []*pace.Place) {
	for range n {
		if p := ls.Enter("m", false); p != nil {
			places = append(places, p)
		}
	}
	return places
}

// waits checks how many calls wait.
func waits(t *testing.T, ls *server, want int) {
	t.Helper()
	synctest.Wait()
	if n := ls.Waiting(); n != want {
		t.Errorf("%d calls wait, want %d", n, want)
	}
}

// TestFew: few calls do not wait: each server lets its share of the first ones go at once, and at least
// one.
func TestFew(t *testing.T) {
	for n, share := range map[int]int{0: pace.First, 1: pace.First, 4: pace.First / 4, 1000: 1} {
		synctest.Test(t, func(t *testing.T) {
			ls := servers(n)
			if p := enter(ls, share); len(p) > 0 {
				t.Errorf("of %d servers, one has %d of its first %d calls wait", n, len(p), share)
			}
			if ls.Enter("another", false) != nil {
				t.Error("a call waits for those of another circuit")
			}
			last := enter(ls, 1)
			waits(t, ls, 1)
			if !<-last[0].Turn() {
				t.Error("a call is to look for another model")
			}
			waits(t, ls, 0)
		})
	}
}

// TestLargeFleet: of more servers than there are first calls, chance picks those that let one go at once, and
// the others follow one by one, as fast as one server alone would let them go.
func TestLargeFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2)).Float64
		const n = 500
		gone, waiting := 0, []*server{}
		for range n {
			s := chosen(n, random)
			if len(enter(s, 1)) == 0 {
				gone++
			} else {
				waiting = append(waiting, s)
			}
		}
		if gone < pace.First*3/4 || gone > pace.First*5/4 {
			t.Errorf("%d calls are made at once, want %d or so", gone, pace.First)
		}
		for step := range 2 {
			time.Sleep(pace.Step)
			synctest.Wait()
			before := len(waiting)
			waiting = slices.DeleteFunc(waiting, func(s *server) bool { return s.Waiting() == 0 })
			if most := pace.First << step; before-len(waiting) > most {
				t.Errorf("%d calls are made in step %d, want at most %d", before-len(waiting), step, most)
			}
		}
		time.Sleep(3 * time.Second)
		for _, s := range waiting {
			waits(t, s, 0)
		}
	})
}

// TestRate: while no call is refused, twice as many are let go in each step, in the order in which they
// came.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := servers(1)
		places := enter(ls, 1000)
		left := 1000 - pace.First
		for n := pace.First / 2; left > 0; n *= 2 {
			time.Sleep(pace.Step)
			synctest.Wait()
			gone := left - ls.Waiting()
			if left = ls.Waiting(); left > 0 && (gone < n*8/10 || gone > n*12/10) {
				t.Errorf("%d calls go in a step, want %d or so", gone, n)
			}
			for i, p := range places {
				if first := len(p.Turn()) > 0; first != (i < len(places)-left) {
					t.Fatalf("place %d has its turn: %t, while %d are left", i, first, left)
				}
			}
		}
	})
}

// provider allows so many calls in any second.
type provider struct {
	mu              sync.Mutex
	let, all        []time.Time
	allows, refused int
}

// ask makes a call, and reports whether it is refused.
func (p *provider) ask() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.all = append(p.all, now)
	p.let = slices.DeleteFunc(p.let, func(t time.Time) bool { return now.Sub(t) > time.Second })
	if len(p.let) >= p.allows {
		p.refused++
		return true
	}
	p.let = append(p.let, now)
	return false
}

// most returns how many calls came in a second.
func (p *provider) most() (most int) {
	from := 0
	for to := range p.all {
		for p.all[to].Sub(p.all[from]) > time.Second {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// TestStorm: of 500 runs that go on at four servers, a provider gets hardly more calls a second than it
// allows, and refuses few, also when it takes a while to.
func TestStorm(t *testing.T) {
	for _, c := range []struct {
		allows         int
		late           time.Duration
		most, refused  int
		within, atOnce time.Duration
	}{
		{allows: 100, most: 110, refused: 30, within: 10 * time.Second},
		{allows: 100, late: 200 * time.Millisecond, most: 200, refused: 200, within: 15 * time.Second},
		{allows: 1000, most: 500, within: 1500 * time.Millisecond},
		{allows: 20, most: 80, refused: 120, within: time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{allows: c.allows}
			begun, worst := time.Now(), 0
			var mu sync.Mutex
			var runs sync.WaitGroup
			for range 4 {
				ls := servers(5)
				for range 125 {
					runs.Go(func() {
						for tries := 1; ; tries++ {
							if place := ls.Enter("m", false); place != nil {
								<-place.Turn()
							}
							refused := p.ask()
							if !refused {
								mu.Lock()
								defer mu.Unlock()
								worst = max(worst, tries)
								return
							}
							time.Sleep(c.late)
							ls.Refused("m", time.Second)
							time.Sleep(time.Second)
						}
					})
				}
			}
			runs.Wait()
			took := time.Since(begun)
			t.Logf("allows %d: %d calls in a second, %d refused, a run %d times at most, %s", c.allows, p.most(),
				p.refused, worst-1, took)
			if p.most() > c.most || p.refused > c.refused || took > c.within {
				t.Errorf("want at most %d, %d, %s", c.most, c.refused, c.within)
			}
		})
	}
}

// TestRetryAfter: what the provider asks to wait holds for the whole line, whatever run was refused;
// those that have another model look for it. After that fewer go at once.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := servers(1)
		enter(ls, pace.First+10)
		other := ls.Enter("m", true)
		ls.Refused("m", 0) // which says nothing about when
		waits(t, ls, 11)
		ls.Refused("m", 20*time.Second)
		ls.Refused("m", 10*time.Second)
		if <-other.Turn() {
			t.Error("a run with another model may ask the one that refuses")
		}
		time.Sleep(20*time.Second - 1)
		waits(t, ls, 10)
		if ls.Enter("m", true) == nil {
			t.Error("a call does not wait")
		}
		time.Sleep(time.Second)
		waits(t, ls, 0)
		if n := len(enter(ls, pace.First)); n < pace.First/2 {
			t.Errorf("after a refusal only %d wait", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ls := servers(1)
		ls.Refused("m", 24*time.Hour) // of a run that has not lost its server
		enter(ls, 1)
		time.Sleep(2*time.Minute + time.Second)
		waits(t, ls, 0)
	})
}

// TestLeave: who gives a place up has nobody else wait for it.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := servers(1000)
		enter(ls, 1)
		places := enter(ls, 3)
		ls.Leave(places[0])
		ls.Leave(places[1])
		<-places[2].Turn()
		ls.Leave(places[2])
		waits(t, ls, 0)
	})
}

// TestForgotten: a minute after the last call, a line begins as at first.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := servers(1)
		for range 5 {
			ls.Refused("m", 0)
			time.Sleep(time.Second)
		}
		if n := len(enter(ls, pace.First)); n == 0 {
			t.Error("no call waits after refusals")
		}
		time.Sleep(2 * time.Minute)
		waits(t, ls, 0)
		if n := len(enter(ls, pace.First)); n > 0 {
			t.Errorf("%d calls wait", n)
		}
	})
}
