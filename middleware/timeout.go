package middleware

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// TimeoutOptions are the options of [Timeout]. One that is 0 bounds nothing.
type TimeoutOptions struct {
	// Tool bounds one try of a tool call, for tools that have no timeout of their own.
	Tool Duration `json:"tool,omitempty"`
	// Model bounds one model call, from its beginning to its end.
	Model Duration `json:"model,omitempty"`
	// ModelIdle bounds the time between two pieces of a model's answer.
	ModelIdle Duration `json:"modelIdle,omitempty"`
	// Stragglers counts the tools that are given up and still run, so that a program
	// can wait for them before it ends. Without it nobody waits: such a tool ends with
	// the process at the latest, and what it returns is not read.
	Stragglers *sync.WaitGroup `json:"-"`
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

// Timeout bounds tool calls and model calls for one agent: [ToolTimeout] and
// [ModelTimeout] in one. Behind [Retry] it bounds each try.
func Timeout(o TimeoutOptions) holdfast.Middleware {
	mustBeValid("Timeout", o)
	m := holdfast.Middleware{Name: "holdfast.timeout"}
	if o.Model > 0 || o.ModelIdle > 0 {
		m.Model = ModelTimeout(time.Duration(o.Model), time.Duration(o.ModelIdle)).Model
	}
	if o.Tool > 0 {
		if o.Stragglers == nil {
			o.Stragglers = new(sync.WaitGroup)
		}
		m.Tool = ToolTimeout(time.Duration(o.Tool), o.Stragglers).Tool
	}
	return m
}
