package shapes // want package:"registers acme.shapes acme.elsewhere acme.returned"

// Package shapes has the forms of statements and expressions that the other packages do
// not have, each with a state's value in it.

import (
	"context"
	"flag"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

type record struct {
	Seen  map[string]int
	Lists map[string][]int
	Names []string
	//holdfast:allow HF004 a map is what is read back
	Any  any
	Grid [2]int
	Next *record
}

func (record) Method() {}

type table struct{ redact func(record) any }

var hidden = table{redact: func(st record) any { return nil }}

// The function in a field is not known, nor is the result of a call.
var (
	key       = state.Register(state.Spec[record]{Name: "acme.shapes"})
	elsewhere = state.Register(state.Spec[record]{Name: "acme.elsewhere", Redact: hidden.redact})
	returned  = state.Register(state.Spec[record]{Name: "acme.returned", Redact: makeRedact()})
)

func makeRedact() func(record) any { return hidden.redact }

var options struct{ Limit int }

// generic is a function of a type that is no Spec.
func generic[S any](spec S) {}

func statements(ctx context.Context, more chan int, what any) {
	st, _ := key.Load(ctx)
	for i := 0; i < 3; i++ {
		st.Seen["loop"] = i // want `HF002`
	}
outer:
	for range 3 {
		st.Seen["label"]++ // want `HF002`
		continue outer
	}
	switch n := len(st.Names); n {
	case 1:
		st.Seen["switch"]++ // want `HF002`
	}
	switch v := what.(type) {
	case int:
		st.Seen["type switch"] = v // want `HF002`
	}
	switch w := what; v := w.(type) {
	case int:
		st.Seen["type switch"] = v // want `HF002`
	}
	select {
	case n := <-more:
		st.Seen["select"] = n // want `HF002`
	default:
	}
	<-more
	if options.Limit > 0 {
		(func() { panic("never") })()
	}
	if len(st.Seen) == 0 {
		st.Seen = map[string]int{}
	}
	st.Seen["made if empty"]++ // want `HF002`
	type local struct{}
	const one = 1
	var seen, rest = st.Seen, local{}
	seen["declared"] = one // want `HF002`
	_ = rest
}

func expressions(ctx context.Context) {
	st, _ := key.Load(ctx)
	st.Lists["a"][0] = 1                // want `HF002: .*Copy it first, with slices.Clone`
	st.Any.(map[string]int)["a"] = 1    // want `HF002: .*Copy it first, with maps.Clone`
	st.Names = slices.Grow(st.Names, 1) // a copy, if there was no room
	st.Names[0] = "grown"               // want `HF002`
	st.Next.Next.Seen["a"] = 1          // want `HF002`
	part := st.Grid[:]                  // the array is in the variable
	part[0] = 1
	options.Limit = 1
	flag.Usage = nil
	defer st.Method()
	f := st.Method
	f()
	more := &options.Limit
	*more = 2
	next := record{Seen: nil, Names: nil}
	next.Names = append(next.Names, "x")
}

var _ = holdfast.Middleware{States: []holdfast.State{key, elsewhere, returned}}
