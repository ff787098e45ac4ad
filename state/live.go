package state

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Live are the states of a run: the one place where they change. Reads need
// no lock; changes happen one at a time.
type Live struct {
	mu  sync.Mutex
	now atomic.Pointer[States]
	// schema has the only keys that can be used; nil allows every key.
	schema *Schema
}

// NewLive starts with the given states; nil means none. Any key can be used, which is
// for tests of a single hook: see [Schema.Live].
func NewLive(s *States) *Live {
	l := &Live{}
	l.now.Store(s)
	return l
}

// Live starts a run of the agent with the given states; nil means none. The run can use
// only the keys of this schema: Load, Update and Reset of any other return a
// [codes.StateNotListed], because what is not in the schema has neither scope nor
// redaction.
func (s *Schema) Live(states *States) *Live {
	l := NewLive(states)
	l.schema = s
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

// liveStates returns the states of the run in the context, if the run can use this one.
func liveStates(ctx context.Context, def *stateDef) (*Live, error) {
	live, _ := ctx.Value(liveKey{}).(*Live)
	switch {
	case live == nil:
		return nil, holdfast.ErrNoRun
	case live.schema != nil && !live.schema.lists(def):
		return nil, errNotListed(def)
	}
	return live, nil
}

func errNotListed(def *stateDef) *holdfast.Error {
	return holdfast.Errorf(codes.StateNotListed,
		"The state %q is not listed by any middleware of this agent, so it cannot be used.", def.name).
		WithHint("List its key in Middleware.States of the middleware that owns it; without that, its scope and its "+
			"redaction would not apply.").
		With("state", def.name)
}
