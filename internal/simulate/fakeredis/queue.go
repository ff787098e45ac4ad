package fakeredis

import (
	"context"
	"sync"
)

// queue hands values on from one goroutine to another, without a bound.
type queue struct {
	mu     sync.Mutex
	values []value
	filled chan struct{}
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

func (q *queue) put(values ...value) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.values = append(q.values, values...)
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take waits until there is something, and returns all of it, but at most so many; nil if ctx is
// done before that.
func (q *queue) take(ctx context.Context, most int) []value {
	for {
		q.mu.Lock()
		if n := min(len(q.values), most); n > 0 {
			taken := q.values[:n:n]
			q.values = q.values[n:]
			q.mu.Unlock()
			return taken
		}
		q.mu.Unlock()
		select {
		case <-q.filled:
		case <-ctx.Done():
			return nil
		}
	}
}
