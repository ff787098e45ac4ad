package main

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// keeperIterations is how many iterations the agent keeper may use.
const keeperIterations = 3

// keptOne is the state acme.kept of deployment A.
type keptOne struct {
	Iterations int `json:"iterations"`
}

// keptTwo is what acme.kept was between the deployments.
type keptTwo struct {
	Count int `json:"count"`
}

// keptThree is the state acme.kept of deployment B.
type keptThree struct {
	Count int    `json:"count"`
	Unit  string `json:"unit"`
}

// counted is a state that is only in one deployment.
type counted struct {
	Count int `json:"count"`
}

// counting is a middleware that changes a state after each iteration.
func counting[T any](spec state.Spec[T], count func(T) T) holdfast.Middleware {
	key := state.Register(spec)
	return holdfast.Middleware{
		Name: spec.Name, States: []holdfast.State{key},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
			if _, err := key.Update(ctx, count); err != nil {
				panic(err)
			}
		},
	}
}

// keeper counts its iterations, in each deployment in another way.
func (w *worker) keeper(deployment string) (holdfast.Agent, error) {
	onlyHere := func(name string) holdfast.Middleware {
		return counting(state.Spec[counted]{Name: name}, func(s counted) counted { s.Count++; return s })
	}
	switch deployment {
	case "A":
		kept := counting(state.Spec[keptOne]{Name: "acme.kept"}, func(s keptOne) keptOne { s.Iterations++; return s })
		return w.agent("keeper", kept, onlyHere("acme.gone")), nil
	case "B":
		kept := counting(state.Spec[keptThree]{Name: "acme.kept", Version: 3, Migrations: map[int]state.Migration{
			1: state.Migrate(func(old keptOne) (keptTwo, error) { return keptTwo{Count: old.Iterations}, nil }),
			2: state.Migrate(func(old keptTwo) (keptThree, error) {
				return keptThree{Count: old.Count, Unit: "iteration"}, nil
			}),
		}}, func(s keptThree) keptThree { s.Count++; return s })
		return w.agent("keeper", kept, onlyHere("acme.fresh")), nil
	}
	return holdfast.Agent{}, fmt.Errorf("unknown deployment %q: use A or B", deployment)
}
