package storekit

import (
	"sync"

	"github.com/holdfast-agents/holdfast/store"
)

// Waiters keeps track of who waits for a thread within a process. Each store wakes them for its
// own commits, and a store that several processes share also for what it hears from the
// others. The zero Waiters is empty. Its methods may be called concurrently.
type Waiters struct {
	mu      sync.Mutex
	waiting map[store.ThreadKey]map[chan struct{}]bool
	posts   map[*func(store.ThreadKey)]bool
	leaves  map[*func(store.Departure)]string // the process that each was registered for
}

// Watch is what [store.Notifier] asks for. The channel holds one wake-up, so that none
// is lost while its reader is busy.
func (w *Waiters) Watch(key store.ThreadKey) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan struct{}, 1)
	if w.waiting == nil {
		w.waiting = map[store.ThreadKey]map[chan struct{}]bool{}
	}
	if w.waiting[key] == nil {
		w.waiting[key] = map[chan struct{}]bool{}
	}
	w.waiting[key][ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting[key], ch)
		if len(w.waiting[key]) == 0 {
			delete(w.waiting, key)
		}
	}
}

// Committed wakes those who watch the thread.
func (w *Waiters) Committed(key store.ThreadKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.waiting[key] {
		select {
		case ch <- struct{}{}:
		default: // a wake-up is already waiting
		}
	}
}

// Threads returns the threads that somebody watches.
func (w *Waiters) Threads() []store.ThreadKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := make([]store.ThreadKey, 0, len(w.waiting))
	for k := range w.waiting {
		keys = append(keys, k)
	}
	return keys
}

// OnPost is what [store.Notifier] asks for.
func (w *Waiters) OnPost(f func(store.ThreadKey)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.posts == nil {
		w.posts = map[*func(store.ThreadKey)]bool{}
	}
	w.posts[&f] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.posts, &f)
	}
}

// Posted calls every function that was registered with OnPost, without holding a lock.
func (w *Waiters) Posted(key store.ThreadKey) {
	w.mu.Lock()
	called := make([]func(store.ThreadKey), 0, len(w.posts))
	for f := range w.posts {
		called = append(called, *f)
	}
	w.mu.Unlock()
	for _, f := range called {
		f(key)
	}
}

// OnDeparture is what [store.Presence] asks for.
func (w *Waiters) OnDeparture(process string, f func(store.Departure)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaves == nil {
		w.leaves = map[*func(store.Departure)]string{}
	}
	w.leaves[&f] = process
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.leaves, &f)
	}
}

// Departed calls every function that was registered with OnDeparture for another process
// than the one that has left, without holding a lock. heir is the process that is the
// heir; if it is "", the first function is told that it is.
func (w *Waiters) Departed(d store.Departure, heir string) {
	type listener struct {
		process string
		f       func(store.Departure)
	}
	w.mu.Lock()
	told := make([]listener, 0, len(w.leaves))
	for f, process := range w.leaves {
		if process != d.Process {
			told = append(told, listener{process, *f})
		}
	}
	w.mu.Unlock()
	for i, to := range told {
		d.Heir = d.Thread != (store.ThreadKey{}) && (to.process == heir || heir == "" && i == 0)
		to.f(d)
	}
}

// HeardDepartures reports whether a function is registered with OnDeparture.
func (w *Waiters) HeardDepartures() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.leaves) > 0
}
