package owner

import (
	"hash/maphash"
	"sync"

	"github.com/holdfast-agents/holdfast/store"
)

// locks serialize what this process decides about one thread.
type locks struct {
	seed maphash.Seed
	all  [256]sync.Mutex
}

// lock takes the thread's lock, until unlock is called.
func (l *locks) lock(key store.ThreadKey) (unlock func()) {
	m := &l.all[maphash.Comparable(l.seed, key)%uint64(len(l.all))]
	m.Lock()
	return m.Unlock
}
