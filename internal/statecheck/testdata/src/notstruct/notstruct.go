package notstruct // want package:"registers .*"

import "github.com/holdfast-agents/holdfast"

type counts struct{ N int }

type seen map[string]int

var (
	_ = holdfast.RegisterState(holdfast.StateSpec[*counts]{Name: "acme.pointer"})      // want `HF001: the state acme.pointer is of type \*counts: a state must be a struct by value.* Register counts itself`
	_ = holdfast.RegisterState(holdfast.StateSpec[seen]{Name: "acme.map"})             // want `HF001: the state acme.map is of type seen.* Make it a field of a struct`
	_ = holdfast.RegisterState[[]string](holdfast.StateSpec[[]string]{Name: "acme.s"}) // want `HF001`
	_ = holdfast.RegisterState(holdfast.StateSpec[any]{Name: "acme.any"})              // want `HF001`
	_ = holdfast.RegisterState(spec)                                                   // want `HF001: the state acme.variable`
	_ = holdfast.RegisterState(hidden())                                               // want `HF001: the state int `
	//holdfast:allow HF001 we like it
	_ = holdfast.RegisterState(holdfast.StateSpec[int]{Name: "acme.int"}) // want `HF001: .* does not count: HF001 is an error`
)

var spec = holdfast.StateSpec[*counts]{Name: "acme.variable"}

func hidden() holdfast.StateSpec[int] { return holdfast.StateSpec[int]{} }
