package listed // want package:"registers .*"

// Package listed has keys that a middleware lists, or may list, and keys that none does.

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

type counts struct{ N int }

func add(c counts) counts { c.N++; return c }

var (
	inList    = state.Register(state.Spec[counts]{Name: "acme.in-list"})
	inShort   = state.Register(state.Spec[counts]{Name: "acme.in-short"})
	appended  = state.Register(state.Spec[counts]{Name: "acme.appended"})
	passed    = state.Register(state.Spec[counts]{Name: "acme.passed"})
	returned  = state.Register(state.Spec[counts]{Name: "acme.returned"})
	Exported  = state.Register(state.Spec[counts]{Name: "acme.exported"})
	forgotten = state.Register(state.Spec[counts]{Name: "acme.forgotten"}) // want `HF006: no middleware lists the state acme.forgotten. .* List forgotten in the Middleware.States of its owner.`
	unused    = (state.Register(state.Spec[counts]{Name: "acme.unused"}))  // want `HF006`
	one, two  = state.Register(state.Spec[counts]{Name: "acme.one"}), 2    // want `HF006: .* acme.one`
	_         = state.Register(state.Spec[counts]{Name: "acme.blank"})
	inStruct  = struct{ key *state.Key[counts] }{state.Register(state.Spec[counts]{Name: "acme.in-struct"})}
	//holdfast:allow HF006 we like it
	allowed = state.Register(state.Spec[counts]{Name: "acme.allowed"}) // want `HF006: .* does not count: HF006 is an error`
)

func middleware() holdfast.Middleware {
	m := holdfast.Middleware{States: []holdfast.State{inList}, BeforeIteration: func(ctx context.Context) error {
		_, err := forgotten.Update(ctx, add)
		if err == nil {
			err = (forgotten).Reset(ctx)
		}
		return err
	}}
	m.States = append(m.States, appended)
	list(passed)
	return m
}

func short() holdfast.Middleware {
	return holdfast.Middleware{"short", []holdfast.State{inShort}, nil}
}

func list(holdfast.State) {}

func key() *state.Key[counts] { return returned }

func local(ctx context.Context) holdfast.Middleware {
	mine := state.Register(state.Spec[counts]{Name: "acme.mine"})
	lost := state.Register(state.Spec[counts]{Name: "acme.lost"}) // want `HF006: .* acme.lost`
	_, _ = lost.Load(ctx)
	_, _ = state.Register(state.Spec[counts]{Name: "acme.nobody"}).Load(ctx) // want `HF006: .* List the key in`
	return holdfast.Middleware{States: []holdfast.State{mine}}
}
