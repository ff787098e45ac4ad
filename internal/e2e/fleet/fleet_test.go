// Package fleet measures what many servers on one Redis cost it while nothing happens, and how soon
// the runs of one that dies go on. The servers are engines in this process, each with connections of
// its own, so that one can die. make fleet measures, and fails if the bars of docs/operations.md do
// not hold; in CI a small fleet shows that what happens is right.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// measured reports whether the whole campaign runs.
func measured() bool { return os.Getenv("HOLDFAST_FLEET") != "" }

// either returns what CI takes, or what the campaign does.
func either(ci, whole int) int {
	if measured() {
		return whole
	}
	return ci
}

// wire is the connections of one server to Redis.
type wire struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	dead bool
}

var errDead = errors.New("this server is dead")

// dial connects, unless the server is dead.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil, errors.Join(errDead, c.Close())
	}
	w.open[c] = true
	return c, nil
}

// cut closes all connections for good, as the kernel does for a process that was killed.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for c := range w.open {
		// The only error is that it is closed.
		_ = c.Close()
	}
}

// open opens a store with connections of its own.
func open(t *testing.T, r *redistest.Server, pool int) (*redisstore.Store, *wire) {
	t.Helper()
	w := &wire{open: map[net.Conn]bool{}}
	client := redis.NewClient(&redis.Options{
		Addr:                  r.Addr,
		Dialer:                w.dial,
		Protocol:              2,
		PoolSize:              pool,
		MinIdleConns:          1,
		PipelinePoolSize:      -1,
		ReadBufferSize:        4 << 10,
		WriteBufferSize:       4 << 10,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
	s, err := redisstore.New(t.Context(), client, redisstore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, w
}

// member is one server of a fleet.
type member struct {
	*looptest.Engine
	wire     *wire
	circuits *circuit.Circuits
}

// lease is that of all servers: the default.
const lease = 3 * time.Second

// join starts a server with the agent.
func join(t *testing.T, r *redistest.Server, pool int, agent holdfast.Agent, seen observe.Observer) *member {
	t.Helper()
	s, w := open(t, r, pool)
	m := &member{wire: w}
	m.circuits = circuit.New(circuit.Config{
		Models: []circuit.Model{{Key: "custom/a", Provider: "custom", Model: "a"}},
		Log:    slog.New(slog.DiscardHandler),
		Now:    time.Now,
	})
	m.circuits.Start()
	t.Cleanup(m.circuits.Close)
	now := clock.Steady(s.Now)
	m.Engine = looptest.Start(t, s, func(c *looptest.Config) {
		c.Log = slog.New(slog.DiscardHandler)
		c.Lease, c.MaxRuns, c.StoreTimeout = lease, 20_000, time.Duration(either(1, 10))*time.Second
		c.StopOnStoreFailure = true // of a server that is dead
		c.Random, c.NewID, c.Now, c.Observer = rand.Float64, clock.NewIDs(now), now, seen
		c.Circuit = m.circuits
		c.Retention = upkeep.Retention{Every: 10 * time.Second, Due: 500 * time.Millisecond}
	}, agent)
	return m
}

// atOnce is how many threads are written at a time.
const atOnce = 64

// own writes heads through the contract of the store, whose owners live and do nothing: they only keep
// their leases, and say that they have no agents, so that nobody leaves a run to them.
func own(t *testing.T, r *redistest.Server, owners, heads int) {
	t.Helper()
	for o := range owners {
		s, _ := open(t, r, 8)
		process := fmt.Sprint("owner", o)
		announce := func() { _ = s.Announce(context.WithoutCancel(t.Context()), process, lease) }
		announce()
		if err := s.Describe(t.Context(), process, []byte(`{"agents":{},"recovers":true}`)); err != nil {
			t.Fatal(err)
		}
		ticker, done := time.NewTicker(lease/3), make(chan struct{})
		var kept sync.WaitGroup
		kept.Go(func() {
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					announce()
				case <-done:
					return
				}
			}
		})
		t.Cleanup(func() { close(done); kept.Wait() })
		routine.Each(heads/owners, atOnce, func(i int) {
			c := &store.Commit{
				Key:       store.ThreadKey{Tenant: "acme", Thread: fmt.Sprintf("%s-%d", process, i)},
				User:      "alice",
				ID:        fmt.Sprintf("c%d", i),
				Expect:    store.Position{Next: 1},
				Fence:     store.Fence{Epoch: 1, Nonce: process},
				Process:   process,
				UpdatedAt: s.Now(),
			}
			if err := s.Commit(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
}

// stats are the figures of INFO.
func stats(t *testing.T, c *redis.Client, sections ...string) map[string]float64 {
	t.Helper()
	figures := map[string]float64{}
	for _, section := range sections {
		text, err := c.Info(t.Context(), section).Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if command, is := strings.CutPrefix(name, "cmdstat_"); is {
				value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				name = "calls " + command
			}
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				figures[name] = n
			}
		}
	}
	return figures
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// say prints a row of the table.
func say(format string, args ...any) {
	if measured() {
		fmt.Fprintf(io.Writer(os.Stdout), format+"\n", args...)
	}
}
