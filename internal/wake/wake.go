// Package wake keeps track of who waits for a thread within a process. All stores use
// it: each wakes the waiters for its own commits, and a store that several processes
// share also for what it hears from the others.
package wake

import (
	"sync"

	"github.com/holdfast-agents/holdfast/store"
)

// List says who waits for what. The zero List is empty. Its methods may be called
// concurrently.
type List struct {
	mu      sync.Mutex
	waiting map[store.ThreadKey]map[chan struct{}]bool
	posts   map[*func(store.ThreadKey)]bool
	leaves  map[*func(store.Departure)]string // the process that each was registered for
}

// Watch is what [store.Notifier] asks for. The channel holds one wake-up, so that none
// is lost while its reader is busy.
func (l *List) Watch(key store.ThreadKey) (<-chan struct{}, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := make(chan struct{}, 1)
	if l.waiting == nil {
		l.waiting = map[store.ThreadKey]map[chan struct{}]bool{}
	}
	if l.waiting[key] == nil {
		l.waiting[key] = map[chan struct{}]bool{}
	}
	l.waiting[key][ch] = true
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting[key], ch)
		if len(l.waiting[key]) == 0 {
			delete(l.waiting, key)
		}
	}
}

// Committed wakes those who watch the thread.
func (l *List) Committed(key store.ThreadKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch := range l.waiting[key] {
		select {
		case ch <- struct{}{}:
		default: // a wake-up is already waiting
		}
	}
}

// Threads returns the threads that somebody watches.
func (l *List) Threads() []store.ThreadKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make([]store.ThreadKey, 0, len(l.waiting))
	for k := range l.waiting {
		keys = append(keys, k)
	}
	return keys
}

// OnPost is what [store.Notifier] asks for.
func (l *List) OnPost(f func(store.ThreadKey)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.posts == nil {
		l.posts = map[*func(store.ThreadKey)]bool{}
	}
	l.posts[&f] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.posts, &f)
	}
}

// Posted calls every function that was registered with OnPost, without holding a lock.
func (l *List) Posted(key store.ThreadKey) {
	l.mu.Lock()
	called := make([]func(store.ThreadKey), 0, len(l.posts))
	for f := range l.posts {
		called = append(called, *f)
	}
	l.mu.Unlock()
	for _, f := range called {
		f(key)
	}
}

// OnDeparture is what [store.Presence] asks for.
func (l *List) OnDeparture(process string, f func(store.Departure)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaves == nil {
		l.leaves = map[*func(store.Departure)]string{}
	}
	l.leaves[&f] = process
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.leaves, &f)
	}
}

// Departed calls every function that was registered with OnDeparture for another process
// than the one that has left, without holding a lock. heir is the process that is the
// heir; if it is "", the first function is told that it is.
func (l *List) Departed(d store.Departure, heir string) {
	type listener struct {
		process string
		f       func(store.Departure)
	}
	l.mu.Lock()
	told := make([]listener, 0, len(l.leaves))
	for f, process := range l.leaves {
		if process != d.Process {
			told = append(told, listener{process, *f})
		}
	}
	l.mu.Unlock()
	for i, to := range told {
		d.Heir = d.Thread != (store.ThreadKey{}) && (to.process == heir || heir == "" && i == 0)
		to.f(d)
	}
}

// HeardDepartures reports whether a function is registered with OnDeparture.
func (l *List) HeardDepartures() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.leaves) > 0
}
