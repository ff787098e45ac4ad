package routine

import "sync"

// Lock is a lock that may be held while a store or another process is waited for. Unlike a
// mutex it counts as blocked for testing/synctest, and those who wait get it in turn. The zero
// Lock is free.
type Lock struct {
	once sync.Once
	held chan struct{}
}

// Lock waits for the lock.
func (l *Lock) Lock() {
	l.once.Do(func() { l.held = make(chan struct{}, 1) })
	l.held <- struct{}{}
}

// Unlock gives it to the next.
func (l *Lock) Unlock() { <-l.held }
