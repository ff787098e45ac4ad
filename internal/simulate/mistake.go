package simulate

import (
	"context"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// A store may take a living process for dead, whose connections have all broken. Its threads are taken over
// although it holds its lease. It may then start what it was about to start for as long as the store's last
// word counts, and ask models until it stores something.

// mistake has the others told that a living server is dead. They do not believe it any more when it has
// renewed its lease.
func (s *server) mistake() {
	w := s.world
	held, err := w.base.Lease(context.Background(), s.process)
	if err != nil || !held.Alive() {
		return
	}
	s.mistaken.Store(true)
	for _, other := range w.servers {
		if other == s || other.isDead() {
			continue
		}
		w.notify(&notice{
			name:   s.process + " counts as dead at " + other.name,
			server: other,
			deliver: func() {
				other.mu.Lock()
				if _, gone := other.gone[s.process]; !gone {
					other.gone[s.process] = held.Until
				}
				other.mu.Unlock()
				other.tell(func(o *server) { o.onDeparture(store.Departure{Process: s.process}) })
			},
			lose: func() {},
		})
	}
}

// takenOver notes that a thread is taken over from a process that holds its lease. The caller holds the lock.
func (w *World) takenOver(k *known, c *store.Commit) {
	if k.process == "" || k.process == c.Process || c.Fence == k.position.Fence {
		return
	}
	if held, err := w.base.Lease(context.Background(), k.process); err == nil && held.Left > 0 {
		if k.taken == nil {
			k.taken = map[string]clock.Moment{}
		}
		k.taken[k.process] = clock.Now()
	}
}

// strays reports whether a server that was taken for dead may still start a tool of the thread: the store has
// said that it is the owner a moment ago.
func (k *known) strays(s *server) bool {
	return s.mistaken.Load() && k.taken[s.process].Elapsed() < lease/3
}
