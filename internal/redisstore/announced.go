package redisstore

import (
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// hintAge is how old a hint must be before it is removed because no head confirms it:
// until then its commit may still be on the way.
const hintAge = 10 * time.Minute

// claim is a hint that a process has a thread. One that is in a list is like that: it has the key
// of the list in the place of the process, and the member of the list in the place of the tag.
type claim struct {
	process, tag string
	score        int64
}

// hints remembers what this process has announced, so that it does so only once.
// Forgetting is harmless: a hint that is written twice is the same hint.
type hints struct {
	mu        sync.Mutex
	announced map[string]hint // by tag
	last      int64           // the last score of an owned thread
	// wrong are the hints that were found wrong.
	wrong map[claim]doubt
}

// doubt is when a hint was first found wrong, and the head that said so.
type doubt struct {
	head  string
	since time.Time
}

// hint is what the directory knows of a thread.
type hint struct {
	owner   holdfast.Principal
	minute  int64
	process string
	score   int64 // when the process claimed the thread, in µs since 1970
	// etag is the commit that left the thread in these lists; nil if they are not known.
	etag     string
	listings []store.Listing
}

// maxHints bounds how many threads a process remembers.
const maxHints = 100_000

func (h *hints) get(tag string) (hint, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is, known := h.announced[tag]
	return is, known
}

func (h *hints) put(tag string, is hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.announced == nil || len(h.announced) >= maxHints {
		h.announced = map[string]hint{}
	}
	h.announced[tag] = is
}

func (h *hints) drop(tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.announced, tag)
}

// score returns a larger number each time, so that a hint that was written again can
// be distinguished from the one before.
func (h *hints) score(now time.Time) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = max(h.last+1, now.UnixMicro())
	return h.last
}

// maxDoubts bounds how many wrong hints a process remembers.
const maxDoubts = 100_000

// doubt remembers that a hint was found wrong, and reports whether its commit is no longer on the
// way: because the head has moved since the hint was first found wrong, so that a commit which it
// announced expects an older one, or because that was long ago.
func (h *hints) doubt(c claim, head string, now clock.Stamp) (dead bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.wrong[c]
	if known && (before.head != head || now.Age(before.since) > hintAge) {
		delete(h.wrong, c)
		return true
	}
	if h.wrong == nil || len(h.wrong) >= maxDoubts {
		h.wrong = map[claim]doubt{}
	}
	if !known {
		h.wrong[c] = doubt{head: head, since: now.Time()}
	}
	return false
}

// trust forgets that a hint was found wrong.
func (h *hints) trust(c claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.wrong, c)
}
