// Package memstore keeps threads in memory, for as long as the process lives. It is
// the executable specification of [store.Store]: maps, one mutex, and nothing
// beyond what it takes to say what a store does.
package memstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

var _ store.Store = (*Store)(nil)

// Store is a store in memory. All its methods may be called concurrently.
type Store struct {
	waiters storekit.Waiters
	mu      sync.Mutex
	threads map[store.ThreadKey]*thread
	leases  map[string]store.Lease // by process; Left is filled in when one is read
	ledgers map[string]*ledger     // by tenant
	hints   map[string]hint        // by name
	format  int                    // of the data; 0 before the first AgreeFormat
	reads   map[string]int         // what the processes have said that they read
	about   map[string][]byte      // what they have said of themselves
	// progress is that of the walk that fills an index.
	progress []byte
}

// thread is everything about one thread.
type thread struct {
	head     store.Head
	messages []store.Message
	known    map[string]bool // the ids of the messages
	records  []store.Record  // record n is at index n-1-trimmed
	trimmed  uint64          // how many records were removed from the front
	parent   string
	listings []store.Listing
	values   map[store.Kind]map[string][]byte
	inbox    []store.InboxItem
	posted   uint64 // the number of the last item posted
}

// New returns an empty store.
func New() *Store {
	return &Store{
		threads: map[store.ThreadKey]*thread{},
		leases:  map[string]store.Lease{},
		ledgers: map[string]*ledger{},
		hints:   map[string]hint{},
		reads:   map[string]int{},
		about:   map[string][]byte{},
	}
}

// Close does nothing: there is nothing to release.
func (s *Store) Close() error { return nil }

// newest returns the ids of a kind's values, the largest first.
func (t *thread) newest(kind store.Kind) []string {
	ids := slices.Sorted(maps.Keys(t.values[kind]))
	slices.Reverse(ids)
	return ids
}

// thread returns an existing thread. The caller holds the lock.
func (s *Store) thread(key store.ThreadKey) (*thread, error) {
	if t := s.threads[key]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("thread %s: %w", key, store.ErrNotFound)
}
