// Package embedding is what the rule about embedded types is tested with.
package embedding

type Engine struct{ started bool }

type run struct{ steps int }

type task = run

type finishing struct {
	*Engine
	token string
}

func steps() int {
	var growth struct {
		task
	}
	type batch struct {
		calls int
		run
	}
	return growth.steps + batch{}.steps
}

// beginning is how it is meant.
type beginning struct {
	engine *Engine
	run    run
}
