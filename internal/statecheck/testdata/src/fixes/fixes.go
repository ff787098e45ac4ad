package fixes // want package:"registers .*"

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

type state struct{ Names []string }

var key = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "Acme.Fixes"}) // want `HF005`

func add(ctx context.Context) error {
	_, err := key.Update(ctx, func(st state) state {
		st.Names = append(st.Names, "x") // want `HF002`
		return st
	})
	return err
}
