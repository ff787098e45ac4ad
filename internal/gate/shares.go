package gate

import (
	"context"
	"sync"
)

// Shares bounds how many do something that keeps a processor busy, and is fair between keys:
// a place that becomes free goes to the keys in turn, however many wait for one of them.
type Shares struct {
	mu   sync.Mutex
	free int
	// turn is the keys for which somebody waits, the next one first.
	turn    []string
	waiting map[string][]chan struct{}
}

// NewShares returns Shares of so many places.
func NewShares(places int) *Shares {
	return &Shares{free: places, waiting: map[string][]chan struct{}{}}
}

// Enter waits for a place, and returns what gives it back; that is to be called once. The
// error is that of ctx.
func (s *Shares) Enter(ctx context.Context, key string) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return s.leave, nil
	}
	place := make(chan struct{}, 1)
	if len(s.waiting[key]) == 0 {
		s.turn = append(s.turn, key)
	}
	s.waiting[key] = append(s.waiting[key], place)
	s.mu.Unlock()
	select {
	case <-place:
		return s.leave, nil
	case <-ctx.Done():
	}
	s.giveUp(key, place)
	return nil, ctx.Err()
}

// Waiting returns how many wait.
func (s *Shares) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, line := range s.waiting {
		n += len(line)
	}
	return n
}

// leave gives a place to the next, or back.
func (s *Shares) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turn) == 0 {
		s.free++
		return
	}
	key := s.turn[0]
	s.turn = s.turn[1:]
	line := s.waiting[key]
	line[0] <- struct{}{}
	if len(line) == 1 {
		delete(s.waiting, key)
		return
	}
	s.waiting[key] = line[1:]
	s.turn = append(s.turn, key)
}

// giveUp takes somebody out of the line. A place that has come meanwhile goes to the next.
func (s *Shares) giveUp(key string, place chan struct{}) {
	s.mu.Lock()
	line := s.waiting[key]
	for i := range line {
		if line[i] == place {
			s.waiting[key] = append(line[:i:i], line[i+1:]...)
			break
		}
	}
	if len(line) == 1 && line[0] == place {
		delete(s.waiting, key)
		for i := range s.turn {
			if s.turn[i] == key {
				s.turn = append(s.turn[:i:i], s.turn[i+1:]...)
				break
			}
		}
	}
	s.mu.Unlock()
	select {
	case <-place:
		s.leave()
	default:
	}
}
