package server

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
)

// timed is a model with timeouts of its own, which take the place of its agent's.
type timed struct {
	holdfast.Model
	total, idle time.Duration
	call        holdfast.ModelCall
}

// newTimed holds a model to timeouts; 0 means none.
func newTimed(m holdfast.Model, total, idle time.Duration) *timed {
	return &timed{Model: m, total: total, idle: idle, call: middleware.ModelTimeout(total, idle).Model(m.Stream)}
}

// Stream implements [holdfast.Model].
func (t *timed) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return t.call(ctx, req)
}

// ModelName returns the model's own names, if it has any.
func (t *timed) ModelName() (provider, model string) {
	if named, ok := t.Model.(interface{ ModelName() (string, string) }); ok {
		return named.ModelName()
	}
	return "", ""
}

// EnforcesOutput reports what the model itself does.
func (t *timed) EnforcesOutput(req *holdfast.ModelRequest) bool {
	m, can := t.Model.(interface {
		EnforcesOutput(*holdfast.ModelRequest) bool
	})
	return can && m.EnforcesOutput(req)
}

// mediaModel is a model that says which media it takes and makes.
type mediaModel interface {
	Media() (takes, makes map[holdfast.PartType]bool)
}

// Media returns what the model itself says.
func (t *timed) Media() (takes, makes map[holdfast.PartType]bool) {
	if m, says := t.Model.(mediaModel); says {
		return m.Media()
	}
	return nil, nil
}

// Continues reports what the model itself says.
func (t *timed) Continues() bool {
	m, says := t.Model.(interface{ Continues() bool })
	return says && m.Continues()
}

// CircuitKey returns the model's own, if it has one.
func (t *timed) CircuitKey() string {
	if keyed, ok := t.Model.(interface{ CircuitKey() string }); ok {
		return keyed.CircuitKey()
	}
	return ""
}

// heldToTimes returns the agent with models that are each held to their own timeouts or,
// where they have none, to these. own is false if no model has any; then nothing is changed.
func heldToTimes(a holdfast.Agent, total, idle time.Duration) (held holdfast.Agent, own bool) {
	isTimed := func(m holdfast.Model) bool { _, is := m.(*timed); return is }
	if !isTimed(a.Model) && !slices.ContainsFunc(a.Fallbacks, isTimed) {
		return a, false
	}
	hold := func(m holdfast.Model) holdfast.Model {
		if t, is := m.(*timed); is {
			return newTimed(t.Model, cmp.Or(t.total, total), cmp.Or(t.idle, idle))
		}
		return newTimed(m, total, idle)
	}
	a.Model, a.Fallbacks = hold(a.Model), slices.Clone(a.Fallbacks)
	for i, m := range a.Fallbacks {
		a.Fallbacks[i] = hold(m)
	}
	return a, true
}
