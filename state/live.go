package state

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
)

// Live are the states of a run: the one place where they change. Reads need
// no lock; changes happen one at a time.
type Live struct {
	mu  sync.Mutex
	now atomic.Pointer[States]
}

// NewLive starts with the given states; nil means none.
func NewLive(s *States) *Live {
	l := &Live{}
	l.now.Store(s)
	return l
}

// Now returns the current states.
func (l *Live) Now() *States { return l.now.Load() }

func (l *Live) update(f func(*States) (*States, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := f(l.now.Load())
	if err != nil {
		return err
	}
	l.now.Store(next)
	return nil
}

type liveKey struct{}

// ContextWith returns a context that carries the states of a run, for Load, Update and
// Reset.
func ContextWith(ctx context.Context, live *Live) context.Context {
	return context.WithValue(ctx, liveKey{}, live)
}

func liveStates(ctx context.Context) (*Live, error) {
	live, _ := ctx.Value(liveKey{}).(*Live)
	if live == nil {
		return nil, holdfast.ErrNoRun
	}
	return live, nil
}
