package filestore

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler has Pebble merge its tables, one merge at a time. Pebble's own
// scheduler begins a merge that failed again at once, and does so for ever where a
// table is damaged. Here a merge that fails is followed by a rest.
type scheduler struct {
	db    pebble.DBForCompaction
	ended chan struct{} // closed by Unregister

	mu       sync.Mutex
	running  bool
	failures int            // in a row
	failed   bool           // the merge that runs
	asking   sync.WaitGroup // calls of db
}

// The rest after a merge that failed doubles from the first up to the longest.
const (
	firstRest   = time.Second
	longestRest = 5 * time.Minute
)

func newScheduler() *scheduler { return &scheduler{ended: make(chan struct{})} }

// Register implements [pebble.CompactionScheduler].
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister implements [pebble.CompactionScheduler].
func (s *scheduler) Unregister() {
	s.mu.Lock()
	close(s.ended)
	s.mu.Unlock()
	s.asking.Wait()
}

// TrySchedule implements [pebble.CompactionScheduler]. Where it says no, Done finds
// what waits.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.begin() {
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission implements [pebble.CompactionScheduler].
func (s *scheduler) UpdateGetAllowedWithoutPermission() {}

// begin reports whether a merge may run now, which then has begun.
func (s *scheduler) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.isOver() {
		return false
	}
	s.running = true
	return true
}

func (s *scheduler) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// fail notes that the merge that runs has failed.
func (s *scheduler) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
}

// Started implements [pebble.CompactionGrantHandle].
func (s *scheduler) Started() {}

// MeasureCPU implements [pebble.CompactionGrantHandle].
func (s *scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements [pebble.CompactionGrantHandle].
func (s *scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements [pebble.CompactionGrantHandle]: the merge has ended. The waiting call is
// begun. Pebble holds no lock here.
func (s *scheduler) Done() {
	if rest := s.rest(); rest > 0 {
		select {
		case <-time.After(rest):
		case <-s.ended:
		}
	}
	for s.beginNext() {
	}
}

// rest is how long to wait after the merge that has ended.
func (s *scheduler) rest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failed {
		s.failures = 0
		return 0
	}
	s.failed = false
	s.failures++
	return min(longestRest, firstRest<<min(s.failures-1, 16))
}

// rests is how many merges have failed in a row.
func (s *scheduler) rests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

// beginNext begins the merge that waits, if there is one. It reports whether it has
// to be asked again: one may have come to wait in the last moment.
func (s *scheduler) beginNext() (again bool) {
	if !s.ask() {
		return false
	}
	defer s.asking.Done()
	if s.db.Schedule(s) {
		return false
	}
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	waiting, _ := s.db.GetWaitingCompaction()
	return waiting && s.begin()
}

// ask reports whether db may still be called; then asking is to be done.
func (s *scheduler) ask() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return false
	}
	s.asking.Add(1)
	return true
}
