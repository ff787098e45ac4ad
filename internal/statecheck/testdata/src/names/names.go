package names // want package:"registers .*"

import "github.com/holdfast-agents/holdfast"

type state struct{ N int }

const owner = "acme."

var long = "variable"

var (
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "counts"})              // want `HF005: the name "counts" is not owner.name, and RegisterState panics`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "acme.counts "})        // want `HF005`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: owner})                 // want `HF005`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{})                            // want `HF005: the name "" is not owner.name`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{"one", 1, "", nil, nil, nil}) // want `HF005`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "acme.a,acme.b"})       // want `HF005: the name "acme.a,acme.b" has a comma`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "holdfast.counts"})     // want `HF005: the name "holdfast.counts" is reserved`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "stateVersions"})       // want `HF005: the name "stateVersions" is a member of the form`
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: owner + "fine"})
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: long})
	_ = holdfast.RegisterState(holdfast.StateSpec[state]{Name: "acme.0000000000111111111122222222223333333333444444444455555555556666666666777777777788888888889999999999000000000011111111112222222222"}) // want `HF005: .* is longer than 128 bytes`
)

func local() {
	spec := holdfast.StateSpec[state]{Name: "Bad"} // want `HF005`
	_ = holdfast.RegisterState(spec)

	changed := holdfast.StateSpec[state]{Name: "Bad"}
	changed.Name = "acme.changed"
	_ = holdfast.RegisterState(changed)
}
