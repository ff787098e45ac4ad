package http

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// largeBody is the size, in bytes, from which a body is large: to decode it, compare
	// it with the history and store it takes the processor for tens of milliseconds.
	largeBody = 256 << 10
	// longestTurn ends the turn of a request that waits for something else: a run that it
	// cancels, or a store that does not answer.
	longestTurn = 2 * time.Second
)

// turns lets large requests in a few at a time, so that some of the processor is always
// left for everything else, and the tenants one after the other, so that the many requests
// of one do not keep those of another waiting.
type turns struct {
	mu   sync.Mutex
	free int
	// waiting has the requests of each tenant, and order the tenants that have any, the
	// next one first.
	waiting map[string][]chan struct{}
	order   []string
}

// newTurns returns turns for half of the processors.
func newTurns() *turns {
	return &turns{free: max(1, runtime.GOMAXPROCS(0)/2), waiting: map[string][]chan struct{}{}}
}

// take waits for the turn of a request with a body of this size, and returns what ends it.
// A small one need not wait. The error is ctx's.
func (t *turns) take(ctx context.Context, tenant string, size int) (end func(), err error) {
	if size < largeBody {
		return func() {}, nil
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return t.begun(), nil
	}
	mine := make(chan struct{})
	if len(t.waiting[tenant]) == 0 {
		t.order = append(t.order, tenant)
	}
	t.waiting[tenant] = append(t.waiting[tenant], mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.begun(), nil
	case <-ctx.Done():
	}
	if !t.withdraw(tenant, mine) {
		t.next() // it was given a turn meanwhile
	}
	return nil, context.Cause(ctx)
}

// decode decodes the body of a request when its turn has come.
func (t *turns) decode(r *http.Request, body []byte, decode func() error) error {
	end, err := t.take(r.Context(), recorderOf(r).tenant, len(body))
	if err != nil {
		return err
	}
	defer end()
	return decode()
}

// begun returns what ends a turn, once, and ends it itself after the longest time.
func (t *turns) begun() (end func()) {
	once := sync.OnceFunc(t.next)
	timer := time.AfterFunc(longestTurn, once)
	return func() {
		timer.Stop()
		once()
	}
}

// next gives a turn that has ended to the tenant that has waited longest for one.
func (t *turns) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	tenant := t.order[0]
	t.order = t.order[1:]
	first := t.waiting[tenant][0]
	if rest := t.waiting[tenant][1:]; len(rest) > 0 {
		t.waiting[tenant] = rest
		t.order = append(t.order, tenant)
	} else {
		delete(t.waiting, tenant)
	}
	close(first)
}

// withdraw removes a request that waits; it reports whether it still did.
func (t *turns) withdraw(tenant string, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[tenant], mine)
	if i < 0 {
		return false
	}
	if len(t.waiting[tenant]) == 1 {
		delete(t.waiting, tenant)
		t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == tenant })
	} else {
		t.waiting[tenant] = slices.Delete(t.waiting[tenant], i, i+1)
	}
	return true
}
