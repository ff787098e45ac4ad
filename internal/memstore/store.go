// Package memstore keeps threads in memory, for as long as the process lives. It is
// the executable specification of [holdfast.Store]: maps, one mutex, and nothing
// beyond what it takes to say what a store does.
package memstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/wake"
)

var _ holdfast.Store = (*Store)(nil)

// Store is a store in memory. All its methods may be called concurrently.
type Store struct {
	waiters wake.List
	mu      sync.Mutex
	threads map[holdfast.ThreadKey]*thread
	alive   map[string]time.Time // when each process's lease runs out
	ledgers map[string]*ledger   // by tenant
}

// thread is everything about one thread.
type thread struct {
	head     holdfast.Head
	messages []holdfast.StoredMessage
	known    map[string]bool   // the ids of the messages
	records  []holdfast.Record // record n is at index n-1-trimmed
	trimmed  uint64            // how many records were removed from the front
	parent   string
	values   map[holdfast.Kind]map[string][]byte
	inbox    []holdfast.InboxItem
	posted   uint64 // the number of the last item posted
}

// New returns an empty store.
func New() *Store {
	return &Store{
		threads: map[holdfast.ThreadKey]*thread{},
		alive:   map[string]time.Time{},
		ledgers: map[string]*ledger{},
	}
}

// Close does nothing: there is nothing to release.
func (s *Store) Close() error { return nil }

// newest returns the ids of a kind's values, the largest first.
func (t *thread) newest(kind holdfast.Kind) []string {
	ids := slices.Sorted(maps.Keys(t.values[kind]))
	slices.Reverse(ids)
	return ids
}

// thread returns an existing thread. The caller holds the lock.
func (s *Store) thread(key holdfast.ThreadKey) (*thread, error) {
	if t := s.threads[key]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("thread %s: %w", key, holdfast.ErrNotFound)
}
