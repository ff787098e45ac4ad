package state_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/state"
	"pgregory.net/rapid"
)

type breaker struct {
	Last  map[string]string `json:"lastSignaturePerTool"`
	Count map[string]int    `json:"consecutiveCountPerTool"`
}

type failures struct {
	Consecutive int `json:"consecutiveFailures"`
}

func formText(tb testing.TB, s *state.States) string {
	tb.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func fromForm(tb testing.TB, text string) *state.States {
	tb.Helper()
	s := &state.States{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestStatesRoundTrip: values survive being written as JSON and read again, and their
// stored text is kept until they are written.
func TestStatesRoundTrip(t *testing.T) {
	t.Parallel()
	trips := state.Register(state.Spec[breaker]{Name: "acme.breaker"})
	fails := state.Register(state.Spec[failures]{Name: "acme.failures"})
	schema := schemaWith(t, trips, fails)
	value := breaker{map[string]string{"tool1": "signature1"}, map[string]int{"tool1": 5, "tool2": 3}}
	original := fails.With(trips.With(schema.New(), value), failures{2})

	form := fromForm(t, formText(t, original))
	for name, s := range map[string]*state.States{
		"as it was read": form,
		"restored":       schema.Restore(form.Info(), valuesOf(t, form), nil),
	} {
		if got := mustGet(t, trips, s); !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %+v", name, got)
		}
		if got := mustGet(t, fails, s); got.Consecutive != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		if formText(t, s) != formText(t, original) {
			t.Errorf("%s:\n%s\n%s", name, formText(t, s), formText(t, original))
		}
	}

	// The spaces show that this is the stored text.
	raw := `{ "lastSignaturePerTool" : {}, "consecutiveCountPerTool": {"tool1": 5}, "unknown": 1 }`
	s := schema.Restore(schema.Info(), []state.Value{{Name: "acme.breaker", Version: 1, Data: json.RawMessage(raw)}},
		nil)
	if got := mustGet(t, trips, s); got.Count["tool1"] != 5 {
		t.Errorf("%+v", got)
	}
	if got := string(valuesOf(t, s)[0].Data); got != raw {
		t.Errorf("a read has changed the stored value: %s", got)
	}
	next := trips.With(s, breaker{Count: map[string]int{"tool1": 10}})
	if got := string(valuesOf(t, next)[0].Data); got !=
		`{"lastSignaturePerTool":null,"consecutiveCountPerTool":{"tool1":10}}` {
		t.Errorf("a write has left %s", got)
	}
	if got := string(valuesOf(t, s)[0].Data); got != raw || mustGet(t, trips, s).Count["tool1"] != 5 {
		t.Errorf("a write has changed the states that it started from: %s", got)
	}
}

// TestStatesForm: the JSON form, member by member, and a reader that knows only some
// members.
func TestStatesForm(t *testing.T) {
	t.Parallel()
	a := state.Register(state.Spec[failures]{Name: "acme.a", Version: 2})
	b := state.Register(state.Spec[failures]{Name: "acme.b"})
	schema := schemaWith(t, b, a)
	text := formText(t, a.With(schema.New(), failures{1}))
	want := `{"schemaSignature":"acme.a,acme.b","schemaVersion":1,"stateVersions":{"acme.a":2,"acme.b":1},` +
		`"states":{"acme.a":{"consecutiveFailures":1}}}`
	if text != want {
		t.Errorf("\n%s\n%s", text, want)
	}
	var old struct {
		States map[string]failures `json:"states"`
	}
	if err := json.Unmarshal([]byte(text), &old); err != nil || old.States["acme.a"].Consecutive != 1 {
		t.Errorf("a reader of the states alone: %+v, %v", old, err)
	}
	if got := formText(t, nil); got != "null" {
		t.Errorf("no states: %s", got)
	}
	if err := json.Unmarshal([]byte(`{"states": 1}`), &state.States{}); err == nil {
		t.Error("states that are not an object were read")
	}
}

// TestStatesOlderThanSchemas: the form without schema members is read, and
// versions are not lost without a schema.
func TestStatesOlderThanSchemas(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[failures]{Name: "acme.failures", Version: 3})
	s := fromForm(t, `{"states": {"acme.other": {"x": 1}}}`)
	if info := s.Info(); info.Version != 0 || info.Signature != "" {
		t.Errorf("%+v", info)
	}
	s = fromForm(t, formText(t, k.With(s, failures{4})))
	want := `{"schemaSignature":null,"schemaVersion":0,"stateVersions":{"acme.failures":3},` +
		`"states":{"acme.failures":{"consecutiveFailures":4},"acme.other":{"x":1}}}`
	if got := formText(t, s); got != want || mustGet(t, k, s).Consecutive != 4 {
		t.Errorf("\n%s\n%s", got, want)
	}
	if s := fromForm(t, `{"schemaSignature": "acme.failures", "states": {}}`); s.Info().Version != 1 {
		t.Errorf("a signature without a version: %+v", s.Info())
	}
}

// TestStatesMetadata: new states have the schema's, and updates keep it.
func TestStatesMetadata(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[failures]{Name: "acme.failures", Version: 2})
	schema := schemaWith(t, k)
	original := schema.New()
	want := state.SchemaInfo{Signature: "acme.failures", Version: 1, StateVersions: map[string]int{"acme.failures": 2}}
	updated := k.With(original, failures{1})
	for name, s := range map[string]*state.States{
		"new": original, "updated": updated, "without": k.Without(updated), "a new run": schema.NewRun(updated),
		"read": fromForm(t, formText(t, updated)),
	} {
		if got := s.Info(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if info := (*state.States)(nil).Info(); info.Version != 0 {
		t.Errorf("no states: %+v", info)
	}
}

// TestStatesThatCannotBeWritten: the error names the state; nothing is silently left
// out.
func TestStatesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[dubious]{Name: "acme.dubious"})
	schema := schemaWith(t, k)
	s := k.With(schema.New(), dubious{func() {}})
	_, err := s.Values()
	wantError(t, err, codes.StateUnwritable, `"acme.dubious"`)
	_, err = s.MarshalJSON()
	wantError(t, err, codes.StateUnwritable, `"acme.dubious"`)
	_, err = schema.Shown(s)
	wantError(t, err, codes.StateUnwritable, `"acme.dubious"`)
	if text := s.String(); !strings.Contains(text, `"acme.dubious" cannot be written`) {
		t.Errorf("printed as %s", text)
	}
}

// TestStatesOfThousandsOfTypes: each has its own place, whatever the order.
func TestStatesOfThousandsOfTypes(t *testing.T) {
	t.Parallel()
	keys := registerCounts("acme.many", 5000)
	schema := schemaOf(t, keys...)
	s := keys[4999].With(schema.New(), benchCount{N: -1})
	if keys[0].Has(s) || keys[4000].Has(s) || mustGet(t, keys[4999], s).N != -1 {
		t.Fatal("one value is seen by several keys")
	}
	s = counted(s, keys)
	restored := schema.Restore(schema.Info(), valuesOf(t, s), nil)
	for i, k := range keys {
		if a, b := mustGet(t, k, s).N, mustGet(t, k, restored).N; a != i || b != i {
			t.Fatalf("%s is %d, restored %d", k.StateName(), a, b)
		}
	}
	change := schema.Compare(restored)
	if change.Any() {
		t.Errorf("%d, %d, %d", len(change.Added), len(change.Removed), len(change.Changed))
	}
	if n := len(valuesOf(t, keys[1234].Without(restored))); n != 4999 {
		t.Errorf("without one there are %d", n)
	}
}

// TestStatesAreLikeAMap compares random operations with a map. In the end it checks
// every container that ever existed: none may have changed.
func TestStatesAreLikeAMap(t *testing.T) {
	t.Parallel()
	keys := slices.Concat(benchFirst[:3], registerCounts("acme.model", 20)[14:])
	schemas := []*state.Schema{
		schemaOf(t, keys...),
		schemaOf(t, keys[:5]...),
		schemaOf(t, keys[4:]...),
		schemaOf[benchCount](t),
	}
	rapid.Check(t, func(r *rapid.T) {
		type generation struct {
			states *state.States
			model  map[string]int
		}
		now := generation{nil, map[string]int{}}
		all := []generation{now}
		key := func() *state.Key[benchCount] { return rapid.SampledFrom(keys).Draw(r, "key") }
		schema := func() *state.Schema { return rapid.SampledFrom(schemas).Draw(r, "schema") }
		check := func(g generation) {
			for _, k := range keys {
				n, has := g.model[k.StateName()]
				if v, err := k.Get(g.states); err != nil || v.N != n || k.Has(g.states) != has {
					r.Fatalf("%s is %+v, %v; want %d, %v", k.StateName(), v, err, n, has)
				}
			}
			values, err := g.states.Values()
			if err != nil || len(values) != len(g.model) {
				r.Fatalf("%d values of %d, %v", len(values), len(g.model), err)
			}
		}
		set := func(s *state.States, change func(map[string]int)) {
			now = generation{s, maps.Clone(now.model)}
			change(now.model)
			all = append(all, now)
		}
		same := func(map[string]int) {}
		r.Repeat(map[string]func(*rapid.T){
			"with": func(r *rapid.T) {
				k, n := key(), rapid.IntRange(1, 9).Draw(r, "n")
				set(k.With(now.states, benchCount{N: n}), func(m map[string]int) { m[k.StateName()] = n })
			},
			"without": func(*rapid.T) {
				k := key()
				set(k.Without(now.states), func(m map[string]int) { delete(m, k.StateName()) })
			},
			"restore": func(r *rapid.T) {
				set(schema().Restore(now.states.Info(), valuesOf(t, now.states), nil), same)
			},
			"adopt": func(*rapid.T) { set(schema().Adopt(now.states), same) },
			"json":  func(*rapid.T) { set(fromForm(t, formText(t, now.states)), same) },
			"":      func(*rapid.T) { check(now) },
		})
		for _, g := range all {
			check(g)
		}
	})
}

// FuzzStatesJSON: no JSON makes reading or writing panic, and writing again what was
// read gives the same text.
func FuzzStatesJSON(f *testing.F) {
	k := state.Register(state.Spec[breaker]{Name: "acme.breaker", Version: 2})
	schema := schemaWith(f, k)
	for _, seed := range []string{
		`null`, `{}`, `{"states": null}`, `{"states": {"acme.breaker": null, "": 1, "\ud800": "<>"}}`,
		formText(f, k.With(schema.New(), breaker{Count: map[string]int{"x": 1}})),
		`{"schemaSignature": ",b,a,a", "schemaVersion": -1, "stateVersions": {"acme.breaker": 3}, "states": ` +
			`{"acme.breaker": {}}, "newerStates": {"acme.breaker": {"version": 2}}}`,
		`{"stateVersions": {"acme.breaker": 1}, "states": {"acme.breaker": {"consecutiveCountPerTool": ` +
			`[]}}, "STATES": {"x": 0}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s state.States
		if json.Unmarshal(text, &s) != nil {
			return
		}
		once := formText(t, &s)
		if twice := formText(t, fromForm(t, once)); twice != once {
			t.Fatalf("different when written again:\n%s\n%s", once, twice)
		}
		restored := schema.Restore(s.Info(), valuesOf(t, &s), func(string, int, int) {})
		change := schema.Compare(restored)
		if _, err := k.Get(restored); err != nil && !strings.Contains(err.Error(), k.StateName()) {
			t.Fatalf("the error does not name the state: %v", err)
		}
		adopted := schema.Adopt(restored)
		if again := schema.Compare(adopted); len(change.TooNew) == 0 && again.Any() {
			t.Fatalf("a change is found twice: %s", fmt.Sprint(again))
		}
		if _, err := schema.Shown(schema.NewRun(schema.SetAside(adopted, []string{k.StateName(), ""}))); err != nil {
			t.Fatal(err)
		}
	})
}
