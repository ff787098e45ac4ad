package right // want package:"registers acme.right acme.loose"

// Package right has states and hooks without a mistake.

import (
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

type id int

func (i id) MarshalText() ([]byte, error)  { return nil, nil }
func (i *id) UnmarshalText(b []byte) error { return nil }

type base struct {
	Created time.Time
}

type tree struct {
	Left, Right *tree
	Leaves      []tree
}

type record struct {
	base
	Name    string `json:"name"`
	N       int
	Seen    map[string]int
	ByID    map[id]string
	ByKey   map[netip.Addr][]string
	Items   []item
	Last    *item
	Raw     json.RawMessage
	Took    time.Duration
	Big     *big.Int
	Bytes   []byte
	Nested  [2]map[int32]tree
	cache   map[string]any `json:"-"`
	OnDone  func()         `json:"-"`
	_       struct{}
	Written int `json:",omitempty"`
}

type item struct {
	N    int
	Tags []string
}

var key = state.Register(state.Spec[record]{
	Name:    "acme.right",
	Initial: func() record { return record{Seen: map[string]int{}} },
	Redact: func(st record) any {
		st.Seen = maps.Clone(st.Seen)
		delete(st.Seen, "secret")
		return st
	},
})

// Tests of two versions of a state register one name twice: see right_test.go.

func cloned(ctx context.Context) error {
	_, err := key.Update(ctx, func(st record) record {
		st.N++
		st.base.Created = time.Time{}
		st.Nested[0] = map[int32]tree{1: {}}
		st.Seen = maps.Clone(st.Seen)
		if st.Seen == nil {
			st.Seen = map[string]int{}
		}
		st.Seen["a"]++
		delete(st.Seen, "b")
		st.Items = slices.Clone(st.Items)
		st.Items[0].N = 1
		st.Items = append(st.Items, item{})
		slices.SortFunc(st.Items, func(a, b item) int { return a.N - b.N })
		last := *st.Last
		last.N++
		st.Last = &last
		return st
	})
	return err
}

func appended(s *state.States) *state.States {
	st, err := key.Get(s)
	if err != nil {
		return s
	}
	st.Items = append(slices.Clip(st.Items), item{})
	st.Items = append(st.Items, item{})
	st.Bytes = append(st.Bytes[:len(st.Bytes):len(st.Bytes)], 'x')
	st.Bytes = append([]byte(nil), st.Bytes...)
	st.Bytes[0] = 'y'
	return key.With(s, st)
}

func clippedFirst(s *state.States) *state.States {
	st, _ := key.Get(s)
	st.Items = slices.Clip(st.Items)
	st.Items = append(st.Items, item{})
	st.Items[0].N = 3
	return key.With(s, st)
}

func copied(ctx context.Context) ([]string, error) {
	st, err := key.Load(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(st.Seen))
	sort.Strings(names)
	names[0] = "x"
	all := make([]item, len(st.Items))
	copy(all, st.Items)
	all[0].N = 2
	for _, it := range st.Items {
		it.N++
		names = append(names, it.Tags...)
	}
	seen := make(map[string]int)
	maps.Copy(seen, st.Seen)
	seen["x"] = 1
	st.Seen = seen
	st.Seen["y"] = 2
	next := record{Seen: map[string]int{}, Items: st.Items}
	next.Seen["z"] = 3
	return names, nil
}

// copyOnWrite clones where it first has to.
func copyOnWrite(ctx context.Context, names []string) error {
	_, err := key.Update(ctx, func(st record) record {
		mine := false
		for _, name := range names {
			if st.Seen[name] > 0 {
				continue
			}
			if !mine {
				st.Seen, mine = maps.Clone(st.Seen), true
			}
			st.Seen[name] = 1
		}
		return st
	})
	return err
}

func branches(ctx context.Context, fresh bool) error {
	st, err := key.Load(ctx)
	if err != nil {
		return err
	}
	if fresh {
		st.Seen = map[string]int{}
	} else {
		st.Seen = maps.Clone(st.Seen)
	}
	st.Seen["a"] = 1
	switch {
	case fresh:
		st.Items = nil
	default:
		st.Items = slices.Clone(st.Items)
	}
	clear(st.Items)
	if st.Last == nil {
		st.Last = &item{}
		st.Last.N = 1
		return nil
	}
	p := &st
	p.N++
	return nil
}

func jumps(ctx context.Context, names []string) {
	st, _ := key.Load(ctx)
	var alias map[string]int
	for _, name := range names {
		switch name {
		case "":
			continue
		case "a":
			st.Seen = maps.Clone(st.Seen)
			break
		default:
			return
		}
		if name == "b" {
			alias = st.Seen
			continue
		}
		if name == "c" {
			st.Bytes = slices.Clone(st.Bytes)
			break
		}
		alias = map[string]int{}
		alias["x"]++
	}
	st.Seen["a"] = 1
	st.Bytes[0] = 'a'
	text := []byte(st.Name)
	text[0] = 'x'
	_ = alias
}

func reset(ctx context.Context, all bool) {
	st, _ := key.Load(ctx)
	if all {
		st.Seen = nil
	} else {
		st.Seen = maps.Clone(st.Seen)
	}
	st.Seen["a"] = 1
	st.Items = nil
	st.Items = append(st.Items, item{})
}

// handed gives only copies to functions that write into them.
func handed(ctx context.Context) {
	_, _ = key.Update(ctx, func(st record) record {
		put(maps.Clone(st.Seen), "a")
		st.Seen = maps.Clone(st.Seen)
		st = st.set("b")
		st.count()
		many(st.Items...)
		return st
	})
}

func put(m map[string]int, name string) { m[name]++ }

func (st record) set(name string) record {
	st.Seen[name]++
	return st
}

func (st *record) count() { st.N++ }

func many(items ...item) { items = append([]item{}, items...); items[0].N = 1 }

// generic helpers know neither type nor name.
func register[T any](name string) *state.Key[T] {
	return state.Register(state.Spec[T]{Name: name})
}

var _ = register[item]("acme.item")

func allowed(ctx context.Context) {
	st, _ := key.Load(ctx)
	//holdfast:allow HF002 nobody else has this map: Initial makes it
	st.Seen["a"] = 1
	st.Seen["b"] = 1 //holdfast:allow HF002 nobody else has this map
}

type loose struct {
	//holdfast:allow HF004 what plugins write is a map when it is read
	Extra any
}

var _ = state.Register(state.Spec[loose]{Name: "acme.loose"})

var _ = holdfast.Middleware{States: []holdfast.State{key}}
