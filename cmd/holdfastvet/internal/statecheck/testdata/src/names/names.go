package names // want package:"registers .*"

import "github.com/holdfast-agents/holdfast/state"

type record struct{ N int }

const owner = "acme."

var long = "variable"

var (
	_ = state.Register(state.Spec[record]{Name: "counts"})                   // want `HF005: the name "counts" is not owner.name, and state.Register panics`
	_ = state.Register(state.Spec[record]{Name: "acme.counts "})             // want `HF005`
	_ = state.Register(state.Spec[record]{Name: owner})                      // want `HF005`
	_ = state.Register(state.Spec[record]{})                                 // want `HF005: the name "" is not owner.name`
	_ = state.Register(state.Spec[record]{"one", 1, "", nil, nil, nil, nil}) // want `HF005`
	_ = state.Register(state.Spec[record]{Name: "acme.a,acme.b"})            // want `HF005: the name "acme.a,acme.b" has a comma`
	_ = state.Register(state.Spec[record]{Name: "holdfast.counts"})          // want `HF005: the name "holdfast.counts" is reserved`
	_ = state.Register(state.Spec[record]{Name: "stateVersions"})            // want `HF005: the name "stateVersions" is a member of the form`
	_ = state.Register(state.Spec[record]{Name: owner + "fine"})
	_ = state.Register(state.Spec[record]{Name: long})
	_ = state.Register(state.Spec[record]{Name: "acme.0000000000111111111122222222223333333333444444444455555555556666666666777777777788888888889999999999000000000011111111112222222222"}) // want `HF005: .* is longer than 128 bytes`
)

func local() {
	spec := state.Spec[record]{Name: "Bad"} // want `HF005`
	_ = state.Register(spec)

	changed := state.Spec[record]{Name: "Bad"}
	changed.Name = "acme.changed"
	_ = state.Register(changed)
}
