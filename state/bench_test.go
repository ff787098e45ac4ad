package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// The place of a key's value depends on how many keys the process made before it, so
// the few keys of the small benchmarks come first, and the benchmark that needs a
// thousand others makes them itself.

type benchCount struct {
	N    int    `json:"n"`
	Note string `json:"note,omitempty"`
}

// benchCall is stored like the count of the circuit breaker in package middleware.
type benchCall struct {
	Signature string
	Count     int
}

func (c benchCall) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s %d", c.Signature, c.Count), nil
}

func (c *benchCall) UnmarshalText(text []byte) (err error) {
	signature, count, _ := strings.Cut(string(text), " ")
	c.Signature = signature
	c.Count, err = strconv.Atoi(count)
	return err
}

type benchBreaker struct {
	Calls map[string]benchCall `json:"tools"`
}

var (
	benchFirst   = registerCounts("bench.first", 10)
	benchTripped = state.Register(state.Spec[benchBreaker]{Name: "bench.breaker"})
	benchLate    = sync.OnceValue(func() []*state.Key[benchCount] { return registerCounts("bench.late", 1000) })
)

func registerCounts(name string, n int) []*state.Key[benchCount] {
	keys := make([]*state.Key[benchCount], n)
	for i := range keys {
		keys[i] = state.Register(state.Spec[benchCount]{Name: fmt.Sprintf("%s.state-%04d", name, i)})
	}
	return keys
}

func schemaOf[T any](tb testing.TB, keys ...*state.Key[T]) *state.Schema {
	tb.Helper()
	states := make([]holdfast.State, len(keys))
	for i, k := range keys {
		states[i] = k
	}
	s, err := state.NewSchema(states...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// counted are states in which each key has a value.
func counted(s *state.States, keys []*state.Key[benchCount]) *state.States {
	for i, k := range keys {
		s = k.With(s, benchCount{N: i, Note: "what it was for"})
	}
	return s
}

// valuesOf returns the stored form.
func valuesOf(tb testing.TB, s *state.States) []state.Value {
	tb.Helper()
	values, err := s.Values()
	if err != nil {
		tb.Fatal(err)
	}
	return values
}

// sink keeps reads from being optimized away.
var sink int

func benchRead(b *testing.B, k *state.Key[benchCount], s *state.States) {
	b.ReportAllocs()
	sum := 0
	for range b.N { // [testing.B.Loop] would be a third of the measured time
		v, err := k.Get(s)
		if err != nil {
			b.Fatal(err)
		}
		sum += v.N
	}
	sink = sum
}

// get shows the cost of the cheapest call that returns a state and an error.
//
//go:noinline
func (c *benchCount) get() (benchCount, error) { return *c, nil }

// Bar: 3 ns, no allocation. The papers: 15-25 ns with a dictionary, 2-3 ns with a
// field for each state.
func BenchmarkStatesRead(b *testing.B) {
	b.Run("field", func(b *testing.B) {
		b.ReportAllocs()
		direct, sum := &benchCount{N: 1}, 0
		for range b.N {
			v, err := direct.get()
			if err != nil {
				b.Fatal(err)
			}
			sum += v.N
		}
		sink = sum
	})
	few := counted(schemaOf(b, benchFirst...).New(), benchFirst)
	b.Run("10-types", func(b *testing.B) { benchRead(b, benchFirst[9], few) })
	all := slices.Concat(benchFirst, benchLate())
	schema := schemaOf(b, all...)
	many := counted(schema.New(), all)
	b.Run("1000-types/first", func(b *testing.B) { benchRead(b, benchFirst[9], many) })
	b.Run("1000-types/late", func(b *testing.B) { benchRead(b, benchLate()[900], many) })
	restored := schema.Restore(schema.Info(), valuesOf(b, many), nil)
	b.Run("1000-types/restored-first", func(b *testing.B) { benchRead(b, benchFirst[9], restored) })
	b.Run("1000-types/restored-late", func(b *testing.B) { benchRead(b, benchLate()[900], restored) })
	b.Run("1000-types/initial", func(b *testing.B) { benchRead(b, benchLate()[900], schema.New()) })
}

type floorValue struct {
	_     *int
	_     *string
	value benchCount
}

var floor *[32]any

// Bars: twice the floor with 10 states, 2 µs with 1,000. The floor copies one node
// of 32 and puts a value into it. The papers: about 30 ns with a dictionary, 8-10 ns
// with a field for each state.
func BenchmarkStatesUpdate(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		floor = &[32]any{}
		for i := 0; b.Loop(); i++ {
			next := *floor
			next[9] = &floorValue{value: benchCount{N: i}}
			floor = &next
		}
	})
	update := func(k *state.Key[benchCount], s *state.States) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s = k.With(s, benchCount{N: i})
			}
		}
	}
	few := counted(schemaOf(b, benchFirst...).New(), benchFirst)
	b.Run("10-states", update(benchFirst[9], few))
	all := slices.Concat(benchFirst, benchLate())
	many := counted(schemaOf(b, all...).New(), all)
	b.Run("1000-states/first", update(benchFirst[9], many))
	b.Run("1000-states/late", update(benchLate()[900], many))
	// The update for hooks also writes the JSON, to refuse a value that cannot be saved.
	b.Run("in-a-run", func(b *testing.B) {
		b.ReportAllocs()
		ctx := state.ContextWith(b.Context(), state.NewLive(few))
		for b.Loop() {
			if _, err := benchFirst[9].Update(ctx, func(v benchCount) benchCount { v.N++; return v }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestStatesAllocate: reads of decoded values allocate nothing, and updates only their
// copies, however many states there are. Allocations are the same on every machine.
func TestStatesAllocate(t *testing.T) {
	all := slices.Concat(benchFirst, benchLate())
	schema := schemaOf(t, all...)
	many := counted(schema.New(), all)
	live := state.NewLive(many)
	ctx := state.ContextWith(t.Context(), live)
	for name, c := range map[string]struct {
		most float64
		f    func()
	}{
		"read":         {0, func() { sink += mustGet(t, benchFirst[9], many).N }},
		"read a later": {0, func() { sink += mustGet(t, benchLate()[900], many).N }},
		"load":         {0, func() { v, _ := benchFirst[9].Load(ctx); sink += v.N }},
		"with":         {2, func() { many = benchFirst[9].With(many, benchCount{N: 1}) }},
		"with a later": {4, func() { many = benchLate()[900].With(many, benchCount{N: 1}) }},
		"update":       {6, func() { _, _ = benchFirst[9].Update(ctx, func(v benchCount) benchCount { return v }) }},
	} {
		if n := testing.AllocsPerRun(100, c.f); n > c.most {
			t.Errorf("%s allocates %v times, at most %v are allowed", name, n, c.most)
		}
	}
}

// Bars: 1 µs for the first read of a breaker's state, which is decoding its JSON, 3 ns
// for later ones. The papers: about 150 ns for the first.
func BenchmarkStatesFirstRead(b *testing.B) {
	schema := schemaOf(b, benchTripped)
	value := benchBreaker{map[string]benchCall{"search": {"9af832660a7ac441", 2}}}
	values := valuesOf(b, benchTripped.With(schema.New(), value))
	b.Run("json-alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v benchBreaker
			if err := json.Unmarshal(values[0].Data, &v); err != nil {
				b.Fatal(err)
			}
			sink += len(v.Calls)
		}
	})
	b.Run("breaker", func(b *testing.B) {
		b.ReportAllocs()
		fresh := make([]*state.States, 4096)
		for i := 0; i < b.N; i++ {
			if i%len(fresh) == 0 {
				b.StopTimer()
				for j := range fresh {
					fresh[j] = schema.Restore(schema.Info(), values, nil)
				}
				b.StartTimer()
			}
			v, err := benchTripped.Get(fresh[i%len(fresh)])
			if err != nil {
				b.Fatal(err)
			}
			sink += len(v.Calls)
		}
	})
	b.Run("breaker-later", func(b *testing.B) {
		b.ReportAllocs()
		s := schema.Restore(schema.Info(), values, nil)
		var last benchBreaker
		for range b.N {
			v, err := benchTripped.Get(s)
			if err != nil {
				b.Fatal(err)
			}
			last = v
		}
		sink = len(last.Calls)
	})
}

// Bars: 10 µs with 100 states, next to nothing when nothing has changed. The papers:
// 5-10 µs.
func BenchmarkStatesCompare(b *testing.B) {
	keys := benchLate()[:100]
	schema := schemaOf(b, keys...)
	older := schemaOf(b, slices.Concat(keys[:40], keys[50:], benchFirst)...)
	info := schema.Info()
	values := valuesOf(b, counted(schema.New(), keys))
	for _, c := range []struct {
		name   string
		states *state.States
	}{
		{"changed", schema.Restore(older.Info(), values, nil)},
		{"equal", schema.Restore(state.SchemaInfo{Signature: info.Signature, Version: info.Version,
			StateVersions: info.StateVersions},
			values, nil)},
		{"same", counted(schema.New(), keys)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				change := schema.Compare(c.states)
				sink += len(change.Added)
			}
		})
	}
}

// builtIn makes as many states as a run with the built-in middleware has, with a few
// entries each.
func builtIn(n int) ([]*state.Key[benchBreaker], benchBreaker) {
	keys := make([]*state.Key[benchBreaker], n)
	for i := range keys {
		keys[i] = state.Register(state.Spec[benchBreaker]{Name: fmt.Sprintf("bench.form.state-%03d", i)})
	}
	value := benchBreaker{map[string]benchCall{}}
	for _, tool := range []string{"search", "read_file", "write_file"} {
		value.Calls[tool] = benchCall{tool + `({"path":"/srv/data/report.md"})`, 2}
	}
	return keys, value
}

var benchForm = sync.OnceValues(func() ([]*state.Key[benchBreaker], benchBreaker) { return builtIn(100) })

// Bar: 500 µs, the papers' figure. Each turn writes all values again, so no encoding
// is cached.
func BenchmarkStatesEncode(b *testing.B) {
	for _, n := range []int{5, 100} {
		keys, value := benchForm()
		schema := schemaOf(b, keys[:n]...)
		b.Run(fmt.Sprintf("%d-states", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := schema.New()
				for _, k := range keys[:n] {
					s = k.With(s, value)
				}
				text, err := s.MarshalJSON()
				if err != nil {
					b.Fatal(err)
				}
				sink += len(text)
			}
		})
	}
}

// Bar: 600 µs, the papers' figure. Every state is read, so nothing is left undecoded.
func BenchmarkStatesDecode(b *testing.B) {
	for _, n := range []int{5, 100} {
		keys, value := benchForm()
		schema := schemaOf(b, keys[:n]...)
		s := schema.New()
		for _, k := range keys[:n] {
			s = k.With(s, value)
		}
		text, err := s.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d-states", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var form state.States
				if err := form.UnmarshalJSON(text); err != nil {
					b.Fatal(err)
				}
				restored := schema.Restore(form.Info(), valuesOf(b, &form), nil)
				for _, k := range keys[:n] {
					v, err := k.Get(restored)
					if err != nil {
						b.Fatal(err)
					}
					sink += len(v.Calls)
				}
			}
		})
	}
}
