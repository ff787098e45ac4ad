package inplace // want package:"registers .*"

import (
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

type inner struct{ Tags []string }

type item struct {
	N     int
	Inner *inner
}

type record struct {
	N     int
	Seen  map[string]int
	Lists map[string][]int
	Items []item
	Names []string
	Last  *item
	Grid  [2][]int
}

var key = state.Register(state.Spec[record]{Name: "acme.inplace", Redact: redact})

var other = state.Register(state.Spec[record]{
	Name: "acme.other",
	Redact: func(st record) any {
		st.Seen["secret"] = 0 // want `HF002: the assignment to st.Seen\["secret"\] writes into a state in place.* st.Seen = maps.Clone\(st.Seen\)`
		return st
	},
})

func redact(st record) any {
	delete(st.Seen, "secret") // want `HF002: delete writes into st.Seen`
	return st
}

func update(ctx context.Context) error {
	_, err := key.Update(ctx, func(st record) record {
		st.N++
		if st.Seen == nil {
			st.Seen = map[string]int{}
		}
		st.Seen["a"]++               // want `HF002`
		st.Seen["b"] = 2             // want `HF002`
		clear(st.Seen)               // want `HF002: clear writes`
		maps.Copy(st.Seen, st.Seen)  // want `HF002: maps.Copy writes`
		st.Items[0].N = 2            // want `HF002: .* st.Items = slices.Clone\(st.Items\)`
		st.Items[0].Inner.Tags = nil // want `HF002`
		st.Last.N = 3                // want `HF002: .*Copy what the pointer points to`
		*st.Last = item{}            // want `HF002`
		st.Grid[0][1] = 4            // want `HF002`
		st.Grid[0] = nil
		slices.Sort(st.Names)                    // want `HF002: slices.Sort writes`
		sort.Sort(sort.StringSlice(st.Names))    // want `HF002: sort.Sort writes`
		copy(st.Names[1:], st.Names)             // want `HF002: copy writes`
		st.Names = slices.Delete(st.Names, 0, 1) // want `HF002: slices.Delete writes`
		st.Lists["a"] = append(st.Lists["a"], 1) // want `HF002: the assignment` `HF002: append may write`
		return st
	})
	return err
}

func named(ctx context.Context) {
	_, _ = key.Update(ctx, bump)
	later := func(st record) record {
		st.Seen["later"] = 1 // want `HF002`
		return st
	}
	_, _ = key.Update(ctx, later)
}

func bump(st record) record {
	st.Seen["a"]++ // want `HF002`
	return st
}

func loaded(ctx context.Context, s *state.States) *state.States {
	st, err := key.Load(ctx)
	if err != nil {
		return nil
	}
	m := st.Seen
	m["a"] = 1 // want `HF002: .* m = maps.Clone\(m\)`
	for i, it := range st.Items {
		st.Items[i].N++     // want `HF002`
		it.Inner.Tags = nil // want `HF002`
	}
	first := &st.Items[0]
	first.N = 1                      // want `HF002`
	st.Names = append(st.Names, "x") // want `HF002: append may write into the array behind st.Names`
	again, _ := key.Get(s)
	if len(again.Names) > 0 {
		again.Seen = map[string]int{}
		return key.With(s, again)
	}
	again.Seen["x"] = 1 // want `HF002`
	other := again
	other.Seen = maps.Clone(other.Seen)
	other.Seen["x"] = 1
	third := other
	third.Seen["x"] = 1
	third.Names[0] = "" // want `HF002`
	next := record{Names: again.Names, Seen: map[string]int{}}
	next.Seen["y"] = 1
	next.Names[0] = "z" // want `HF002`
	s = key.With(s, next)
	next.Seen["too late"] = 1 // want `HF002`
	value, _ := key.Update(ctx, func(st record) record { return st })
	value.Seen["a"] = 1 // want `HF002`
	go func() {
		again.Seen["b"] = 1 // want `HF002`
	}()
	return s
}

func clippedIsNoCopy(ctx context.Context) {
	st, _ := key.Load(ctx)
	st.Names = slices.Clip(st.Names)
	st.Names[0] = "x" // want `HF002`
}

func reason(ctx context.Context) {
	st, _ := key.Load(ctx)
	//holdfast:allow HF002
	st.Seen["a"] = 1 // want `HF002: .*//holdfast:allow HF002 does not count: it needs a reason`

	//holdfast:allow HF004 another code
	st.Seen["b"] = 1 // want `HF002`
}

func reset(ctx context.Context) {
	st, _ := key.Load(ctx)
	if len(st.Seen) > 9 {
		st.Seen = nil
	}
	next := st.Seen
	if next == nil {
		next = map[string]int{}
	}
	next["a"] = 1 // want `HF002`
}

// Functions of the package that are handed a state's values are followed.
func helpers(ctx context.Context) {
	_, _ = key.Update(ctx, func(st record) record {
		set(1, st.Seen)
		return st.with("a")
	})
}

func (st record) with(name string) record {
	return st.deeper(name)
}

func (st record) deeper(name string) record {
	st.Seen[name]++ // want `HF002`
	return st
}

func set(n int, m map[string]int) {
	m["x"] = n // want `HF002: the assignment to m\["x"\]`
}

var _ = holdfast.Middleware{States: []holdfast.State{key, other}}
