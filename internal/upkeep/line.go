package upkeep

import (
	"context"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// endedThread is a thread whose log is due to be archived.
type endedThread struct {
	key   store.ThreadKey
	ended clock.Moment // when its run did
}

// line is where they wait, in the order in which their runs ended. It takes memory for those that
// wait, and has room for all runs that a server can end while their logs stay as they are.
type line struct {
	mu      sync.Mutex
	waiting []endedThread
	more    chan struct{} // holds one if there may be any
}

// maxWaiting bounds how many threads wait: 20,000 runs a second end in five seconds.
const maxWaiting = 100_000

func newLine() *line { return &line{more: make(chan struct{}, 1)} }

// add adds a thread, unless too many wait: retention finds it later.
func (l *line) add(t endedThread) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) < maxWaiting {
		l.waiting = append(l.waiting, t)
		l.tell()
	}
}

// tell has one of those who wait for a thread look.
func (l *line) tell() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// next removes the first thread, once there is one; false when ctx is done.
func (l *line) next(ctx context.Context) (endedThread, bool) {
	for {
		if t, is := l.first(); is {
			return t, true
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return endedThread{}, false
		}
	}
}

func (l *line) first() (t endedThread, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return t, false
	}
	t = l.waiting[0]
	if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
		l.tell()
	} else {
		l.waiting = nil
	}
	return t, true
}
