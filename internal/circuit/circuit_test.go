package circuit_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/store"
)

// The circuits of one process, by what is reported and when.

const key = "acme/large 0a1b2c"

// made returns circuits that share through the store, which may be nil, and their log.
func made(hints store.Hints) (*circuit.Circuits, *process.Log) {
	log := &process.Log{}
	return circuit.New(circuit.Config{
		Models: []circuit.Model{
			{
				Key:      key,
				Provider: "acme",
				Model:    "large",
			},
			{Key: "acme/large other", Provider: "acme", Model: "large"},
			{Key: "acme/small 0a1b2c", Provider: "acme", Model: "small"},
		},
		Hints: hints, Log: slog.New(slog.NewTextHandler(log, nil)), Now: time.Now,
	}), log
}

// openFor checks how long the circuit is still open; 0 if it is not.
func openFor(t *testing.T, c *circuit.Circuits, want time.Duration) {
	t.Helper()
	got := time.Duration(0)
	if until, open := c.Open(key); open {
		got = time.Until(until)
	}
	if got != want {
		t.Errorf("the circuit is open for %s, want %s", got, want)
	}
}

// fail reports so many failures of a kind.
func fail(c *circuit.Circuits, n int, kind failure.Kind) {
	for range n {
		c.Report(key, kind, 0)
	}
}

func TestCounting(t *testing.T) {
	for _, kind := range []failure.Kind{failure.Overloaded, failure.Cut, failure.Rate} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := made(nil)
				fail(c, circuit.Threshold-1, kind)
				openFor(t, c, 0)
				c.Report(key, "", 0) // a success begins a new row
				fail(c, circuit.Threshold-1, kind)
				openFor(t, c, 0)
				time.Sleep(circuit.Memory + 1) // and so does a long time without a failure
				fail(c, circuit.Threshold-1, kind)
				openFor(t, c, 0)
				time.Sleep(circuit.Memory)
				fail(c, 1, kind)
				openFor(t, c, circuit.First)
			})
		})
	}
}

// TestNeverCounted: what is wrong with a request says nothing about the model.
func TestNeverCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := made(nil)
		for _, kind := range []failure.Kind{failure.TooLong, failure.Refused, failure.Invalid, "of another version"} {
			fail(c, circuit.Threshold-1, failure.Cut)
			fail(c, 100, kind)
			openFor(t, c, 0)
			c.Report(key, "", 0)
		}
		if log.String() != "" {
			t.Errorf("the log has %s", log)
		}
	})
}

// TestAskedTime: a limited rate opens the circuit for as long as the provider asks, within
// bounds.
func TestAskedTime(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Millisecond, 20 * time.Second: 20 * time.Second, 24 * time.Hour: circuit.Longest,
		1<<63 - 1: circuit.Longest,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := made(nil)
			c.Report(key, failure.Rate, asked)
			openFor(t, c, want)
			time.Sleep(want)
			openFor(t, c, 0)
		})
	}
	synctest.Test(t, func(t *testing.T) { // who is overloaded may ask for time too, once that counts
		c, _ := made(nil)
		c.Report(key, failure.Overloaded, time.Minute)
		openFor(t, c, 0)
		fail(c, circuit.Threshold-2, failure.Overloaded)
		c.Report(key, failure.Overloaded, time.Minute)
		openFor(t, c, time.Minute)
	})
}

// TestOperatorsMatter: a used-up account and a refused key open the circuit at once, and
// for long; the circuit of another key is not touched.
func TestOperatorsMatter(t *testing.T) {
	for _, kind := range []failure.Kind{failure.Quota, failure.Auth} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := made(nil)
			fail(c, 1, kind)
			openFor(t, c, circuit.Longest)
			if _, open := c.Open("acme/large other"); open {
				t.Error("the same model with another key is not asked")
			}
			if _, open := c.Open("unknown"); open {
				t.Error("a model without a circuit is not asked")
			}
			time.Sleep(circuit.Longest)
			openFor(t, c, 0)
			c.Begin(key)
			fail(c, 1, kind)
			openFor(t, c, circuit.Longest)
		})
	}
}

// TestHalfOpen: one request tries the model; its failure opens the circuit for longer, its
// success closes it.
func TestHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := made(nil)
		fail(c, circuit.Threshold, failure.Overloaded)
		for _, d := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
			openFor(t, c, d*time.Second)
			time.Sleep(d * time.Second)
			openFor(t, c, 0)
			openFor(t, c, 0) // to look takes nobody's turn
			c.Begin(key)
			openFor(t, c, circuit.Patience)
			fail(c, 1, failure.Overloaded)
		}
		time.Sleep(5 * time.Minute)
		c.Begin(key)
		fail(c, 1, failure.TooLong) // says nothing: the next one tries
		openFor(t, c, 0)
		c.Begin(key)
		time.Sleep(circuit.Patience - 1)
		openFor(t, c, 1)
		time.Sleep(time.Nanosecond) // that one was cut off
		openFor(t, c, 0)
		c.Begin(key)
		c.Report(key, "", 0)
		openFor(t, c, 0)
		fail(c, circuit.Threshold-1, failure.Overloaded) // all is forgotten
		openFor(t, c, 0)
		fail(c, 1, failure.Overloaded)
		openFor(t, c, circuit.First)
		if n := strings.Count(log.String(), "level=WARN"); n != 2 ||
			strings.Count(log.String(), "answers again") != 1 ||
			!strings.Contains(log.String(), "provider=acme model=large kind=overloaded until=") {
			t.Errorf("%d warnings in\n%s", n, log)
		}
	})
}

// TestLate: what was asked before the circuit opened neither closes it nor opens it again
// and again.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := made(nil)
		c.Report(key, failure.Rate, 20*time.Second)
		time.Sleep(time.Second)
		for range 100 {
			c.Report(key, "", 0)
			fail(c, 10, failure.Cut)
			c.Report(key, failure.Rate, 20*time.Second)
		}
		openFor(t, c, 19*time.Second)
		c.Report(key, failure.Rate, time.Minute) // this is news
		openFor(t, c, time.Minute)
		fail(c, 1, failure.Quota)
		openFor(t, c, circuit.Longest)
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d lines in the log\n%s", n, log)
		}
	})
}

// TestCountOpen: the metric counts what is not asked now.
func TestCountOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := made(nil)
		look := func(want ...int) {
			t.Helper()
			got := []int{c.CountOpen("acme", "large"), c.CountOpen("acme", "small")}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("open are %v, want %v", got, want)
			}
		}
		look(0, 0)
		fail(c, 1, failure.Quota)
		look(1, 0)
		c.Report("acme/large other", failure.Rate, time.Second)
		look(2, 0)
		time.Sleep(time.Second)
		look(1, 0)
	})
}
