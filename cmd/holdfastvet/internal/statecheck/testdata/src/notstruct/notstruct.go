package notstruct // want package:"registers .*"

import "github.com/holdfast-agents/holdfast/state"

type counts struct{ N int }

type seen map[string]int

var (
	_ = state.Register(state.Spec[*counts]{Name: "acme.pointer"})      // want `HF001: the state acme.pointer is of type \*counts: a state must be a struct by value.* Register counts itself`
	_ = state.Register(state.Spec[seen]{Name: "acme.map"})             // want `HF001: the state acme.map is of type seen.* Make it a field of a struct`
	_ = state.Register[[]string](state.Spec[[]string]{Name: "acme.s"}) // want `HF001`
	_ = state.Register(state.Spec[any]{Name: "acme.any"})              // want `HF001`
	_ = state.Register(spec)                                           // want `HF001: the state acme.variable`
	_ = state.Register(hidden())                                       // want `HF001: the state int `
	//holdfast:allow HF001 we like it
	_ = state.Register(state.Spec[int]{Name: "acme.int"}) // want `HF001: .* does not count: HF001 is an error`
)

var spec = state.Spec[*counts]{Name: "acme.variable"}

func hidden() state.Spec[int] { return state.Spec[int]{} }
