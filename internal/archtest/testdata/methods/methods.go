// Package methods is what the gauge of a type's methods is tested with.
package methods

import "context"

type door interface {
	open()
	close()
}

type engine struct{ starts, ends int }

func (e *engine) start() { e.starts++ }

func (e engine) running() bool { return e.starts > e.ends }

func stop(e *engine) { e.ends++ }

func stopped(e engine) bool { return e.starts == e.ends }

func restart(ctx context.Context, e *engine, times int) { e.starts += times }

var reset = func(e *engine) { *e = engine{} }

// wrapper has what it wraps, and a door.
type wrapper struct {
	*engine
	door
}

func (w wrapper) start() { w.engine.start() }

// holder has neither, since its field has a name.
type holder struct {
	engine *engine
	doors  []door
}

// made is handed the engine second.
func made(name string, e *engine) holder { return holder{engine: e} }
