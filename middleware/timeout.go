package middleware

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// TimeoutOptions are the options of [Timeout]. A bound of 0 is no bound.
type TimeoutOptions struct {
	// Tool bounds one attempt of a tool call, for tools without a timeout of their own.
	Tool Duration `json:"tool,omitempty"`
	// Model bounds one model call as a whole.
	Model Duration `json:"model,omitempty"`
	// ModelIdle bounds the time until the next piece of a model's answer.
	ModelIdle Duration `json:"modelIdle,omitempty"`
	// Stragglers holds the tools that still run after their time was up, so that a program
	// can wait for them before it exits. If it is nil, nobody waits: such a tool ends with
	// the process at the latest, and its result is dropped either way.
	Stragglers *sync.WaitGroup `json:"-"`
}

func (o TimeoutOptions) withDefaults() TimeoutOptions {
	if o.Stragglers == nil {
		o.Stragglers = new(sync.WaitGroup)
	}
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o TimeoutOptions) Validate() error {
	switch {
	case o.Tool < 0 || o.Model < 0 || o.ModelIdle < 0:
		return errors.New("a timeout is negative; write a duration like 30s, or leave it out for no bound")
	case o.Tool == 0 && o.Model == 0 && o.ModelIdle == 0:
		return errors.New("nothing is bounded; set tool, model or modelIdle to a duration like 30s")
	}
	return nil
}

// Timeout bounds the tool calls and model calls of one agent: it combines [ToolTimeout]
// and [ModelTimeout]. Listed after [Retry], it bounds each attempt.
func Timeout(o TimeoutOptions) holdfast.Middleware {
	mustBeValid("Timeout", o)
	o = o.withDefaults()
	m := holdfast.Middleware{Name: "holdfast.timeout"}
	if o.Model > 0 || o.ModelIdle > 0 {
		m.Model = ModelTimeout(time.Duration(o.Model), time.Duration(o.ModelIdle)).Model
	}
	if o.Tool > 0 {
		m.Tool = ToolTimeout(time.Duration(o.Tool), o.Stragglers).Tool
	}
	return m
}
