package http

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
)

// Clients that are refused come back, and a crowd of them all at once: each time, its refusals
// together take the processor from everybody else. So from a certain number on refusals are spread
// over the next two seconds, and the crowd with them. That also slows down a client that tries keys.

const (
	// refusedAtOnce is how many callers are refused within a spell without a wait.
	refusedAtOnce = 100
	// spell is over how long the others are spread.
	spell = 2 * time.Second
)

// refusals spreads the answers to callers who are not known.
type refusals struct {
	// waits is called before a request waits for its refusal: if another connection needs the
	// room, nobody needs this one. It returns what is closed when the connection is.
	waits func(*http.Request) <-chan struct{}
	log   *slog.Logger

	mu    sync.Mutex
	since clock.Moment
	n     int          // within the spell that began then
	told  clock.Moment // when the log last told of a crowd
}

// tellEvery is how often the log tells of a crowd.
const tellEvery = time.Minute

// wait waits until a request may be refused, or its client has gone.
func (s *refusals) wait(r *http.Request) {
	d := s.next()
	if d == 0 {
		return
	}
	s.tell(r)
	closed := s.waits(r)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-closed:
	case <-r.Context().Done():
	}
}

// tell says in the log that there is a crowd, with the address of one of it.
func (s *refusals) tell(r *http.Request) {
	s.mu.Lock()
	again := s.told.Never() || s.told.Ran() >= tellEvery
	if again {
		s.told = clock.Now()
	}
	s.mu.Unlock()
	if again {
		s.log.Warn("many callers have no valid key, so their refusals wait for up to two seconds: look for a client "+
			"whose key has expired, or keep them out in front of the server",
			"address", r.RemoteAddr, "refused", fmt.Sprintf("more than %d in %s", refusedAtOnce, spell))
	}
}

// next returns how long the next refusal waits.
func (s *refusals) next() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.Never() || s.since.Ran() >= spell {
		s.since, s.n = clock.Now(), 0
	}
	if s.n++; s.n <= refusedAtOnce {
		return 0
	}
	// However many there are, multiples of the golden ratio are far apart in every interval.
	_, part := math.Modf(float64(s.n) * math.Phi)
	return time.Duration(part * float64(spell))
}
