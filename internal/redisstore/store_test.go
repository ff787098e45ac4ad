package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// The conformance suite on all kinds of Redis, and what the other tests share: a Redis,
// stores in it, and commits.

// shared is the Redis of all tests that do not need their own.
var shared redistest.Shared

func TestMain(m *testing.M) {
	if err := testkit.Checks(4); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// When a Redis did not answer, go-redis tries once a second whether it does, and looks only
	// then whether its pool was closed.
	dialing := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	goleak.VerifyTestMain(m, dialing, goleak.Cleanup(func(code int) {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the shared Redis:", err)
			code = 1
		}
		os.Exit(code)
	}))
}

// installations counts the stores of all tests; each has its own prefix.
var installations atomic.Int64

// newPrefix returns a prefix that no other store has.
func newPrefix() string { return fmt.Sprintf("hf%d:", installations.Add(1)) }

// openShared opens a new, empty store in the shared Redis.
func openShared(t *testing.T) *Store {
	t.Helper()
	return openAt(t, shared.Server(t).URL(), newPrefix())
}

func openAt(t *testing.T, url, prefix string) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopener opens the same keys again, as another process would.
func reopener(url string) storetest.Options {
	return storetest.Options{Reopen: func(t *testing.T, s store.Store) store.Store {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return openAt(t, url, s.(*Store).keys.prefix)
	}, Break: map[string]func(*testing.T, store.Store, store.ThreadKey){
		"damaged":     setting("h", "damaged"),
		"a bit":       setting("h", "4:aaaa4:bbbb1,2;5:alicf0:1.0;00000000"),
		"newer":       setting(fieldLayout, "9"),
		"no version":  setting(fieldLayout, ""),
		"no position": setting("h", "4:"),
	}}
}

// setting returns a function that sets a field of a thread behind the store's back.
func setting(field, value string) func(*testing.T, store.Store, store.ThreadKey) {
	return func(t *testing.T, s store.Store, key store.ThreadKey) {
		t.Helper()
		r := s.(*Store)
		if err := r.client.HSet(t.Context(), r.keys.thread(tag(key)), field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// conform runs the whole suite at one URL, and random commands beside the reference at
// another, in CI fewer of them: see TestMain. That one holds nothing else: it is emptied
// before each sequence of commands, because a walk through all threads costs as much as
// there are keys.
func conform(t *testing.T, url, compareURL string) {
	t.Run("Suite", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store { return openAt(t, url, newPrefix()) }, reopener(url))
	})
	t.Run("Reference", func(t *testing.T) {
		open := func(t *testing.T) store.Store {
			s := openAt(t, compareURL, newPrefix())
			if err := s.client.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			return s
		}
		storetest.Compare(t, open, func(*testing.T) store.Store { return memstore.New() }, reopener(compareURL))
	})
}

// rareSuite reports whether the conformance suite runs at a place whose difference from the
// others has tests of its own: in CI at one of two, the other one with the next commit.
func rareSuite(t *testing.T, place int) bool {
	t.Helper()
	return len(testkit.Sample(t, 2, place, []string{t.Name()})) > 0
}

func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	url := "redis://" + miniredis.RunT(t).Addr()
	conform(t, url, url)
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	server := shared.Server(t)
	conform(t, server.URL(), server.Database(t))
}

// TestOnCluster has everything that needs a cluster, because starting one takes
// seconds.
func TestOnCluster(t *testing.T) {
	t.Parallel()
	server := redistest.StartCluster(t)
	url := "redis+cluster://" + server.Addr
	conform(t, url, url)
	t.Run("Inspect", func(t *testing.T) { testInspectCluster(t, server) })
	t.Run("Death", func(t *testing.T) {
		testDeath(t, func(name string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{
				Addrs:                 []string{server.Addr},
				ClientName:            name,
				Protocol:              2,
				ContextTimeoutEnabled: true,
			})
		})
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://localhost:6379", "redis://:secret@localhost:port",
		"redis://:secret@127.0.0.1:1/0?dial_timeout=1s&max_retries=-1",
		"redis://:secret@localhost:6379/x", "redis://:secret@localhost?unknown=1",
		"redis+sentinel://:secret@localhost:26379",
		"redis+cluster://:secret@localhost:x", "redis://:sec%ret@h",
	} {
		s, err := Open(t.Context(), url, Options{})
		if err == nil {
			t.Errorf("%s was opened", url)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec%ret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func aThread(name string) store.ThreadKey {
	return store.ThreadKey{Tenant: "acme", Thread: name}
}

// advance makes a commit that follows the thread's head; change may add to it.
func advance(t *testing.T, s *Store, key store.ThreadKey, change func(c *store.Commit)) {
	t.Helper()
	if err := tryAdvance(t.Context(), s, key, change); err != nil {
		t.Fatal(err)
	}
}

func tryAdvance(ctx context.Context, s *Store, key store.ThreadKey, change func(c *store.Commit)) error {
	h, err := s.Head(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		h, err = &store.Head{Key: key, Next: 1, Fence: store.Fence{}}, nil
	}
	if err != nil {
		return err
	}
	c := &store.Commit{
		Key:    key,
		ID:     fmt.Sprintf("c-%d-%d", h.Next, time.Now().UnixNano()),
		Expect: h.Position(),
		User:   "alice",
		Fence: store.Fence{
			Epoch: 1,
			Nonce: "0123456789abcdef",
		},
		UpdatedAt: time.Now(),
		Records:   [][]byte{[]byte(`{"type":"X"}`)},
	}
	if change != nil {
		change(c)
	}
	return s.Commit(ctx, c)
}
