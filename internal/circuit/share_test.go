package circuit_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/store"
)

// The circuits of several processes that share a store.

// counted counts the calls of a store, and fails all while away is set.
type counted struct {
	store.Hints
	reads, writes atomic.Int32
	away          atomic.Value // func(context.Context) error, nil or not set: the store is there
}

func (s *counted) fails(ctx context.Context) error {
	if f, _ := s.away.Load().(func(context.Context) error); f != nil {
		return f(ctx)
	}
	return nil
}

func (s *counted) PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error {
	s.writes.Add(1)
	if err := s.fails(ctx); err != nil {
		return err
	}
	return s.Hints.PutHint(ctx, name, data, ttl)
}

func (s *counted) list(ctx context.Context) ([]store.Hint, error) {
	s.reads.Add(1)
	if err := s.fails(ctx); err != nil {
		return nil, err
	}
	return s.Hints.Hints(ctx)
}

// door is a counted store as the circuits see it.
type door struct{ *counted }

func (d door) Hints(ctx context.Context) ([]store.Hint, error) { return d.list(ctx) }

// started returns circuits that share through the store until the test ends.
func started(t *testing.T, s *counted) (*circuit.Circuits, *process.Log) {
	t.Helper()
	c, log := made(door{s})
	c.Start()
	t.Cleanup(c.Close)
	return c, log
}

// pass lets time pass, and what is to happen in it happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestShared: a circuit that opens in one process is open in another a moment after that
// one asks, and each tries the model itself.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Hints: memstore.New()}
		a, _ := started(t, s)
		b, log := started(t, s)
		openFor(t, b, 0)
		pass(circuit.Refresh)
		fail(a, circuit.Threshold, failure.Overloaded)
		synctest.Wait()
		if n := s.writes.Load(); n != 1 {
			t.Errorf("%d writes", n)
		}
		openFor(t, b, 0) // nobody waits for the store
		synctest.Wait()
		openFor(t, b, circuit.First)
		if _, open := b.Open("acme/large other"); open {
			t.Error("the hint counts for another key")
		}
		if !strings.Contains(log.String(),
			"level=INFO msg=\"another server says that a model fails; it is not asked for a while\" provider=acme "+
				"model=large kind=overloaded until=") {
			t.Errorf("the log is %s", log)
		}
		pass(circuit.First)
		openFor(t, a, 0)
		openFor(t, b, 0)
		b.Begin(key)
		b.Report(key, "", 0)
		a.Begin(key)
		fail(a, 1, failure.Cut)
		pass(circuit.Refresh)
		openFor(t, b, 0)
		synctest.Wait()
		openFor(t, b, 0) // b has seen that the model answers it
		openFor(t, a, 2*circuit.First-circuit.Refresh)
	})
}

// TestHintsHoldNobodyForEver: whatever others say all the time, a process tries the model
// itself when the first hint is over, and then knows better.
func TestHintsHoldNobodyForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Hints: memstore.New()}
		c, _ := started(t, s)
		tell := func() {
			t.Helper()
			if err := s.Hints.PutHint(t.Context(), "circuit/"+key, []byte(failure.Auth), circuit.Longest); err != nil {
				t.Fatal(err)
			}
			openFor(t, c, 0)
			pass(circuit.Refresh)
		}
		tell()
		openFor(t, c, circuit.Longest-circuit.Refresh)
		for range 10 {
			pass(circuit.Longest / 10)
			if err := s.Hints.PutHint(t.Context(), "circuit/"+key, []byte(failure.Auth), circuit.Longest); err != nil {
				t.Fatal(err)
			}
			c.Open(key)
			synctest.Wait()
		}
		openFor(t, c, 0)
		c.Begin(key)
		c.Report(key, "", 0)
		for range 11 { // almost an hour
			tell()
			openFor(t, c, 0)
			pass(circuit.Longest - circuit.Refresh)
		}
		pass(circuit.Longest)
		tell()
		openFor(t, c, circuit.Longest-circuit.Refresh)
	})
}

// TestStrangeHints: what is no hint about a circuit of this process, or about one that this
// version could have opened, is ignored.
func TestStrangeHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Hints: memstore.New()}
		c, log := started(t, s)
		for name, h := range map[string]store.Hint{
			"circuit/" + key: {Data: []byte("overloaded"),
				Left: store.MaxHintAge}, // longer than any circuit
			key:                         {Data: []byte("overloaded"), Left: time.Minute},
			"circuit/":                  {Data: []byte("overloaded"), Left: time.Minute},
			"circuit/acme/unknown":      {Data: []byte("overloaded"), Left: time.Minute},
			"circuit/acme/large other":  {Data: []byte{0xff, 0}, Left: time.Minute},
			"circuit/acme/small 0a1b2c": {Data: []byte("invalid"), Left: time.Minute},
		} {
			if err := s.Hints.PutHint(t.Context(), name, h.Data, h.Left); err != nil {
				t.Fatal(err)
			}
		}
		openFor(t, c, 0)
		pass(circuit.Refresh)
		if n := c.CountOpen("acme", "large") + c.CountOpen("acme", "small"); n != 0 || log.String() != "" ||
			s.reads.Load() != 1 {
			t.Errorf("%d circuits are open after %d reads: %s", n, s.reads.Load(), log)
		}
	})
}

// TestCost: the store is read once in a refresh at most, and not at all while nobody asks;
// it is written when a circuit opens.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Hints: memstore.New()}
		c, _ := started(t, s)
		pass(time.Hour)
		if r, w := s.reads.Load(), s.writes.Load(); r != 0 || w != 0 {
			t.Errorf("an idle process has read %d and written %d times", r, w)
		}
		fail(c, 1, failure.Quota)
		for range 10_000 { // requests in ten seconds
			c.Open(key)
			c.Begin(key)
			fail(c, 1, failure.Quota)
			pass(time.Millisecond)
		}
		if r, w := s.reads.Load(), s.writes.Load(); r > 11 || w > 3 {
			t.Errorf("10,000 requests have read %d and written %d times", r, w)
		}
		pass(time.Hour)
		if r := s.reads.Load(); r > 12 {
			t.Errorf("read %d times", r)
		}
	})
}

// TestStoreAway: each process counts alone, no request waits, and what is still true is told
// when the store is back.
func TestStoreAway(t *testing.T) {
	for name, away := range map[string]func(context.Context) error{
		"refuses": func(context.Context) error { return errors.New("connection refused") },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics":  func(context.Context) error { panic("the store") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &counted{Hints: memstore.New()}
				s.away.Store(away)
				a, log := started(t, s)
				b, _ := started(t, s)
				began := time.Now()
				for range 1000 {
					a.Open(key)
					b.Open(key)
					fail(a, 1, failure.Quota)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("a thousand requests waited %s", took)
				}
				openFor(t, a, circuit.Longest)
				pass(10 * time.Second)
				openFor(t, b, 0)
				for range 10 {
					a.Open(key)
					pass(10 * time.Second)
				}
				if n := strings.Count(log.String(), "each finds out alone"); n != 1 {
					t.Errorf("said %d times: %s", n, log)
				}
				s.away.Store((func(context.Context) error)(nil))
				a.Open(key)
				pass(circuit.Refresh)
				a.Open(key)
				pass(circuit.Refresh)
				b.Open(key)
				pass(circuit.Refresh)
				if until, open := b.Open(key); !open ||
					time.Until(until) > circuit.Longest-2*time.Minute+20*time.Second {
					t.Errorf("b was not told: %s, %t", time.Until(until), open)
				}
				if n := strings.Count(log.String(), "tell each other again"); n != 1 {
					t.Errorf("the log is %s", log)
				}
			})
		})
	}
}

// TestClose: it waits for the call under way, which it cuts off, and the circuits work on.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Hints: memstore.New()}
		s.away.Store(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		c, log := started(t, s)
		fail(c, 1, failure.Auth)
		synctest.Wait()
		began := time.Now()
		c.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %s", took)
		}
		c.Close()
		openFor(t, c, circuit.Longest)
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("the log is %s", log)
		}
	})
	alone, _ := made(nil)
	alone.Start()
	alone.Close()
}

// TestAdd: models that come later have circuits, and those that there are keep theirs. The
// circuits' findings are shared from then on if they were not before, and not after Close.
func TestAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Hints: memstore.New()}
		c, log := made(nil)
		c.Start()
		defer c.Close()
		fail(c, circuit.Threshold, failure.Overloaded)
		c.Add([]circuit.Model{{Key: key, Provider: "acme", Model: "large"},
			{Key: "new", Provider: "acme", Model: "new"}}, door{s})
		openFor(t, c, circuit.First)
		c.Report("new", failure.Auth, 0)
		synctest.Wait()
		if _, open := c.Open("new"); !open || c.CountOpen("acme", "new") != 1 ||
			!strings.Contains(log.String(), "model=new") {
			t.Errorf("a model that was added has no circuit: %s", log)
		}
		if n := s.writes.Load(); n != 2 { // the one from before is told too
			t.Errorf("%d writes", n)
		}
		c.Add(nil, door{s})
		c.Close()
		late, _ := made(nil)
		late.Start()
		late.Close()
		late.Add(nil, door{s})
		late.Report("new", failure.Auth, 0)
		synctest.Wait()
		if n := s.writes.Load(); n != 2 {
			t.Errorf("%d writes after Close", n)
		}
	})
}
