package loop

import (
	"sync"
)

// An intent is stored before its call starts, so a process that finds one cannot tell a call
// that was cut off from one that never began. The owner can. When it leaves the run, or ends
// it, it says in its last commit which calls it has not started; from then on they cannot
// start here. The next owner starts them like any other call, and stores their intents again
// first.

// starts are the calls of a run that were started in this process.
type starts struct {
	mu   sync.Mutex
	ids  map[string]bool
	over bool // nothing starts any more
}

// begin notes that a call starts now. It returns false if it must not.
func (s *starts) begin(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[call] = true
	return true
}

// forget is called when all calls have their results.
func (s *starts) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = nil
}

// end has nothing start any more.
func (s *starts) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *starts) has(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[call]
}
