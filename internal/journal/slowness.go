package journal

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Slowness knows how long the commits of a store take, and so how long words wait for company: not at
// all in a store that is quick. All Writers of a process share one, which knows sooner than each of
// them that a store has become slow, or has recovered.
type Slowness struct {
	mu     sync.Mutex
	took   [15]time.Duration // the newest ones, at n and before it
	n      int
	window atomic.Int64 // in ns
}

const (
	// slowCommit is the median from which on words wait.
	slowCommit = 5 * time.Millisecond
	// windowCommits is how many commits long they wait then, so that a store with many streams has
	// a fifth of the work.
	windowCommits = 4
	// longestWindow is for how long at most: people still see words come.
	longestWindow = 250 * time.Millisecond
)

// note notes how long a commit has taken.
func (s *Slowness) note(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took[s.n%len(s.took)] = took
	s.n++
	newest := s.took
	known := newest[:min(s.n, len(newest))]
	slices.Sort(known)
	var window time.Duration
	if median := known[len(known)/2]; median > slowCommit {
		window = min(windowCommits*median, longestWindow)
	}
	s.window.Store(int64(window))
}

// Window returns how long words wait now.
func (s *Slowness) Window() time.Duration { return time.Duration(s.window.Load()) }
