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
	slow   int          // how many of them were slow
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
	place := &s.took[s.n%len(s.took)]
	s.slow += slow(took) - slow(*place)
	*place = took
	s.n++
	known := min(s.n, len(s.took))
	if s.slow < known-known/2 { // as nearly always: the median is not slow, whatever it is
		s.window.Store(0)
		return
	}
	newest := s.took
	slices.Sort(newest[:known])
	s.window.Store(int64(min(windowCommits*newest[known/2], longestWindow)))
}

// slow returns 1 for a commit that took long.
func slow(took time.Duration) int {
	if took > slowCommit {
		return 1
	}
	return 0
}

// Window returns how long words wait now.
func (s *Slowness) Window() time.Duration { return time.Duration(s.window.Load()) }
