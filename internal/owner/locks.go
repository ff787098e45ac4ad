package owner

import (
	"sync"

	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/store"
)

// locks serialize what this process decides about one thread. Each thread has a lock of its
// own while somebody needs it, so no thread waits for another one.
type locks struct {
	mu  sync.Mutex
	all map[store.ThreadKey]*threadLock
}

// threadLock is the lock of one thread.
type threadLock struct {
	mine  routine.Lock
	users int // who hold it or wait for it
}

// lock takes the thread's lock, until unlock is called.
func (l *locks) lock(key store.ThreadKey) (unlock func()) {
	l.mu.Lock()
	one := l.all[key]
	if one == nil {
		one = &threadLock{}
		if l.all == nil {
			l.all = map[store.ThreadKey]*threadLock{}
		}
		l.all[key] = one
	}
	one.users++
	l.mu.Unlock()
	one.mine.Lock()
	return func() {
		one.mine.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.all, key)
		}
	}
}
