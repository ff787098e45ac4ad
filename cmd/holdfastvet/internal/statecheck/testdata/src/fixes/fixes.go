package fixes // want package:"registers .*"

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

type record struct{ Names []string }

var key = state.Register(state.Spec[record]{Name: "Acme.Fixes"}) // want `HF005`

func add(ctx context.Context) error {
	_, err := key.Update(ctx, func(st record) record {
		st.Names = append(st.Names, "x") // want `HF002`
		return st
	})
	return err
}

var _ = holdfast.Middleware{States: []holdfast.State{key}}
