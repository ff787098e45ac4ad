package thread

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// A long history takes a while to read: tens of milliseconds for thousands of messages. The
// process that has just run a thread has it in memory, and will probably run it again. So it
// keeps that history, with the ETag of the head that it belongs to. Every change of a thread
// gives its head another ETag, so whether the history is that of the thread as it is now, the
// head says, which is read anyway.

// Long histories are kept, of so many bytes together, until nobody has used them for a while.
const (
	keptTotal = 64 << 20
	keptIdle  = 5 * time.Minute
)

// Kept are the histories of threads that have run in this process lately. A nil *Kept keeps
// nothing.
type Kept struct {
	mu      sync.Mutex
	threads map[store.ThreadKey]*keptHistory
	bytes   int64 // what they take together
	uses    uint64
	expiry  *time.Timer // runs while something is kept
	closed  bool
}

// keptHistory is one of them. Its history is not changed any more.
type keptHistory struct {
	history *History
	etag    string // of the head that it belongs to
	leaf    string
	bytes   int64  // what it takes in memory, roughly
	used    uint64 // when it was used last, in uses
	fresh   bool   // it was used since the timer ran
	// lent means that somebody may add to the history in place. The lists of all others end where
	// it ends, so that they copy them first.
	lent bool
}

// NewKept returns an empty one.
func NewKept() *Kept { return &Kept{threads: map[store.ThreadKey]*keptHistory{}} }

// Put keeps the history of a thread that has run here, whose head has the given ETag. The
// caller does not change it any more.
func (k *Kept) Put(key store.ThreadKey, etag, leaf string, h *History) {
	if k == nil || len(h.Path) < longHistory || h.Branched {
		return
	}
	kept := &keptHistory{
		history: h,
		etag:    etag,
		leaf:    leaf,
		bytes:   memoryOf(h),
		fresh:   true,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
	if k.closed || kept.bytes > keptTotal {
		return
	}
	k.threads[key], k.bytes = kept, k.bytes+kept.bytes
	k.use(kept)
	for k.bytes > keptTotal {
		k.drop(k.oldest())
	}
	if k.expiry == nil {
		k.expiry = time.AfterFunc(keptIdle, k.expire)
	}
}

// History returns the caller's own copy of a thread's history, if it is kept, and is that of the
// head with the ETag and the leaf; else nil.
func (k *Kept) History(key store.ThreadKey, etag, leaf string) *History {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	kept := k.threads[key]
	if kept != nil && (kept.etag != etag || kept.leaf != leaf) {
		k.drop(key)
		kept = nil
	}
	lent := false
	if kept != nil {
		k.use(kept)
		lent, kept.lent = kept.lent, true
	}
	k.mu.Unlock()
	if kept == nil {
		return nil
	}
	h := kept.history.clone()
	if lent {
		h.Path, h.Raw, h.domain = slices.Clip(h.Path), slices.Clip(h.Raw), slices.Clip(h.domain)
	}
	return h
}

// Close forgets all, for a process that runs no more threads. Nothing is kept from then on.
func (k *Kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed, k.bytes = true, 0
	clear(k.threads)
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
	}
}

// Committed notes a commit that has succeeded. One that changes no messages leaves the history
// as it is, under another ETag.
func (k *Kept) Committed(c *store.Commit) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.threads[c.Key]
	switch {
	case kept == nil:
	case len(c.Messages)+len(c.Forget) == 0 && kept.etag == c.Expect.ETag:
		kept.etag = c.ID
	case kept.etag != c.ID: // which a commit that is repeated has
		k.drop(c.Key)
	}
}

// use notes that an entry was used. The caller holds mu, as for those below.
func (k *Kept) use(kept *keptHistory) {
	k.uses++
	kept.used, kept.fresh = k.uses, true
}

// drop forgets a thread.
func (k *Kept) drop(key store.ThreadKey) {
	if kept := k.threads[key]; kept != nil {
		k.bytes -= kept.bytes
		delete(k.threads, key)
	}
}

// oldest returns the thread that was not used for the longest time.
func (k *Kept) oldest() (oldest store.ThreadKey) {
	least := k.uses + 1
	for key, kept := range k.threads {
		if kept.used < least {
			oldest, least = key, kept.used
		}
	}
	return oldest
}

// expire forgets what was not used since the last time.
func (k *Kept) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, kept := range k.threads {
		if !kept.fresh {
			k.drop(key)
			continue
		}
		kept.fresh = false
	}
	if k.expiry = nil; len(k.threads) > 0 {
		k.expiry = time.AfterFunc(keptIdle, k.expire)
	}
}

// messageMemory is roughly what a message of a history takes besides its text.
const messageMemory = 1 << 10

// memoryOf returns what a history takes in memory, roughly.
func memoryOf(h *History) (bytes int64) {
	for _, raw := range h.Raw {
		bytes += messageMemory + 2*int64(len(raw)) // as it is stored, and decoded
	}
	for _, said := range h.Said {
		bytes += int64(len(said))
	}
	return bytes + messageMemory/4*int64(len(h.Elsewhere)+len(h.Calls))
}
