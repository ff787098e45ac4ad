package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redistest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installations counts the stores of a test; each has keys of its own.
var installations atomic.Int64

// opener returns a function that opens a new, empty store at the URL.
func opener(url string) func(t *testing.T) holdfast.Store {
	return func(t *testing.T) holdfast.Store {
		return openAt(t, url, fmt.Sprintf("hf%d:", installations.Add(1)))
	}
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
func reopener(url string) func(t *testing.T, s holdfast.Store) holdfast.Store {
	return func(t *testing.T, s holdfast.Store) holdfast.Store {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return openAt(t, url, s.(*Store).keys.prefix)
	}
}

// conform runs the whole suite, and random commands beside the reference.
func conform(t *testing.T, url string) {
	opts := storetest.Options{Reopen: reopener(url)}
	t.Run("Suite", func(t *testing.T) { storetest.Run(t, opener(url), opts) })
	t.Run("Reference", func(t *testing.T) {
		storetest.Compare(t, opener(url), func(*testing.T) holdfast.Store { return memstore.New() }, opts)
	})
}

func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	conform(t, "redis://"+m.Addr())
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Start(t).URL())
}

func TestOnCluster(t *testing.T) {
	t.Parallel()
	conform(t, "redis+cluster://"+redistest.StartCluster(t).Addr)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://localhost:6379", "redis://:secret@localhost:port", "redis://:secret@127.0.0.1:1/0?dial_timeout=1s&max_retries=-1",
		"redis://:secret@localhost:6379/x", "redis://:secret@localhost?unknown=1", "redis+sentinel://:secret@localhost:26379",
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

func aThread(name string) holdfast.ThreadKey {
	return holdfast.ThreadKey{Tenant: "acme", Thread: name}
}

// advance makes a commit that follows the thread's head; change may add to it.
func advance(t *testing.T, s *Store, key holdfast.ThreadKey, change func(c *holdfast.Commit)) {
	t.Helper()
	if err := tryAdvance(t.Context(), s, key, change); err != nil {
		t.Fatal(err)
	}
}

func tryAdvance(ctx context.Context, s *Store, key holdfast.ThreadKey, change func(c *holdfast.Commit)) error {
	h, err := s.Head(ctx, key)
	if errors.Is(err, holdfast.ErrNotFound) {
		h, err = &holdfast.Head{Key: key, Next: 1, Fence: holdfast.Fence{}}, nil
	}
	if err != nil {
		return err
	}
	c := &holdfast.Commit{
		Key: key, ID: fmt.Sprintf("c-%d-%d", h.Next, time.Now().UnixNano()), Expect: h.Position(), User: "alice",
		Fence: holdfast.Fence{Epoch: 1, Nonce: "0123456789abcdef"}, UpdatedAt: time.Now(), Records: [][]byte{[]byte(`{"type":"X"}`)},
	}
	if change != nil {
		change(c)
	}
	return s.Commit(ctx, c)
}
