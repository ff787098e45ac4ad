package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

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
