package redisstore

import (
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// claim is a hint that a process has a thread.
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
	// wrong are the hints that the last list of owned threads found wrong, with the heads
	// that said so.
	wrong map[claim]string
}

// hint is what the directory knows of a thread.
type hint struct {
	owner   holdfast.Principal
	minute  int64
	process string
	score   int64 // when the process claimed the thread, in µs since 1970
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

// doubt remembers which hints were found wrong.
func (h *hints) doubt(wrong map[claim]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = wrong
}

// outdated reports whether the hint was found wrong before, when the head was another one.
func (h *hints) outdated(c claim, head string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.wrong[c]
	return known && before != head
}
