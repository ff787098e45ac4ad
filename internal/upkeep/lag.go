package upkeep

import (
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
)

// IndexLook is what a look into a list of the index has found: how late each thread was found that was
// not found before, how many threads are left for which something is due that could not be done, and how
// many were in the list by mistake.
type IndexLook struct {
	List         string
	Late         []time.Duration
	Left, Mended int
}

// lag is how late what was due was found lately, of all lists.
type lag struct {
	mu sync.Mutex
	// most is the latest since a minute, and before that of the minute before.
	most, before time.Duration
	since        clock.Moment
}

// lagSpan is how long the latest counts, at least.
const lagSpan = time.Minute

// turn begins another minute when it is time.
func (l *lag) turn() {
	switch ran := l.since.Ran(); {
	case ran > 2*lagSpan:
		l.most, l.before, l.since = 0, 0, clock.Now()
	case ran > lagSpan:
		l.most, l.before, l.since = 0, l.most, clock.Now()
	}
}

// note takes in how late threads were found.
func (l *lag) note(late []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	for _, d := range late {
		l.most = max(l.most, d)
	}
}

// latest returns the most of the last minute.
func (l *lag) latest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	return max(l.most, l.before)
}
