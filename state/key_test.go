package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/state"
)

type visits struct {
	Count int    `json:"count"`
	Last  string `json:"last,omitempty"`
}

// mustGet reads a state that must be readable.
func mustGet[T any](tb testing.TB, k *state.Key[T], s *state.States) T {
	tb.Helper()
	v, err := k.Get(s)
	if err != nil {
		tb.Fatalf("%s: %v", k.StateName(), err)
	}
	return v
}

// schemaWith makes the schema of keys of several types.
func schemaWith(tb testing.TB, states ...holdfast.State) *state.Schema {
	tb.Helper()
	s, err := state.NewSchema(states...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// storedAs returns states with one stored value, written under a schema without names.
func storedAs(tb testing.TB, k holdfast.State, version int, data string) *state.States {
	tb.Helper()
	return schemaWith(tb, k).Restore(state.SchemaInfo{Version: 1}, []state.Value{
		{Name: k.StateName(), Version: version, Data: json.RawMessage(data)},
	}, nil)
}

// wantError checks the code and the text of an error.
func wantError(tb testing.TB, err error, code string, parts ...string) {
	tb.Helper()
	e := holdfast.AsError(err)
	if e == nil || e.Code != code {
		tb.Fatalf("error %v, want code %s", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error(), p) {
			tb.Errorf("the error %q does not say %q", e.Error(), p)
		}
	}
	if e.Code != codes.StateUnwritable && e.Hint == "" {
		tb.Errorf("the error %q has no hint", e.Error())
	}
}

// panicText returns what f panics with.
func panicText(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return
}

func TestRegisterPanicsOnMistakes(t *testing.T) {
	t.Parallel()
	register := func(spec state.Spec[visits]) func() {
		return func() { state.Register(spec) }
	}
	for want, f := range map[string]func(){
		`the name "" is not owner.name`:            register(state.Spec[visits]{}),
		`the name "visits" is not owner.name`:      register(state.Spec[visits]{Name: "visits"}),
		`the name "acme.Visits" is not owner.name`: register(state.Spec[visits]{Name: "acme.Visits"}),
		`the name "acme.a,b" is not owner.name`:    register(state.Spec[visits]{Name: "acme.a,b"}),
		`is longer than 128 bytes`: register(state.Spec[visits]{Name: "acme." +
			strings.Repeat("x", 124)}),
		`("acme.visits"): version -1 is negative`: register(state.Spec[visits]{Name: "acme.visits",
			Version: -1}),
		`("acme.visits"): unknown scope "tenant"; use ScopeThread`: register(state.Spec[visits]{Name: "acme.visits",
			Scope: "tenant"}),
		`("acme.map"): map[string]int is not a struct; a state is`: func() {
			state.Register(state.Spec[map[string]int]{Name: "acme.map"})
		},
		`("acme.p"): *state_test.visits is not a struct; a state`: func() {
			state.Register(state.Spec[*visits]{Name: "acme.p"})
		},
	} {
		if got := panicText(f); !strings.HasPrefix(got, "state.Register") || !strings.Contains(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
	if k := state.Register(state.Spec[visits]{Name: "acme." + strings.Repeat("x", 123)}); len(k.StateName()) != 128 {
		t.Error("a name of 128 bytes is good")
	}
}

// TestStateInitialValue: a state without a value, or with a stored null of any
// version, has its initial value.
func TestStateInitialValue(t *testing.T) {
	t.Parallel()
	plain := state.Register(state.Spec[visits]{Name: "acme.visits"})
	three := state.Register(state.Spec[visits]{Name: "acme.three", Version: 3, Initial: func() visits {
		return visits{Count: 3}
	}})
	for name, s := range map[string]*state.States{
		"no states":      nil,
		"empty states":   {},
		"new states":     schemaWith(t, plain, three).New(),
		"null":           storedAs(t, three, 3, "null"),
		"an older null":  storedAs(t, three, 1, "null"),
		"nothing stored": storedAs(t, three, 3, ""),
	} {
		if v := mustGet(t, three, s); v != (visits{Count: 3}) {
			t.Errorf("%s: %+v", name, v)
		}
		if v := mustGet(t, plain, s); v != (visits{}) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestStateWithAndWithout: a write makes new states; forgetting a value that is not
// there returns the same states.
func TestStateWithAndWithout(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[visits]{Name: "acme.visits"})
	other := state.Register(state.Spec[visits]{Name: "acme.other"})
	empty := schemaWith(t, k, other).New()
	one := k.With(empty, visits{Count: 1})
	two := k.With(one, visits{Count: 2})
	none := k.Without(two)
	for i, c := range []struct {
		s    *state.States
		want int
		has  bool
	}{{nil, 0, false}, {empty, 0, false}, {one, 1, true}, {two, 2, true}, {none, 0, false},
		{k.With(nil, visits{Count: 4}), 4, true}} {
		if got := mustGet(t, k, c.s).Count; got != c.want || k.Has(c.s) != c.has {
			t.Errorf("%d: %d, %v; want %d, %v", i, got, k.Has(c.s), c.want, c.has)
		}
		if other.Without(c.s) != c.s {
			t.Errorf("%d: Without made new states although there was no value", i)
		}
	}
}

type limits struct {
	Max    int                `json:"max"`
	Tools  map[string]int     `json:"tools"`
	Order  []visits           `json:"order"`
	Extra  *visits            `json:"extra"`
	Any    any                `json:"any"`
	Pair   [2]map[string]bool `json:"pair"`
	Nested struct {
		Names []string `json:"names"`
		Deep  int      `json:"deep"`
	} `json:"nested"`
	Since time.Time `json:"since"`
	note  map[string]bool
}

// TestStateDefaults: members that are not stored keep their defaults, and stored ones
// are read as they are: nothing of the initial value is mixed in.
func TestStateDefaults(t *testing.T) {
	t.Parallel()
	shared := map[string]int{"search": 1, "write": 2}
	initial := func() limits {
		l := limits{
			Max:   5,
			Tools: shared,
			Order: []visits{{7, "seven"}},
			Extra: &visits{8, "eight"},
			Any:   map[string]any{"a": 1.0},
		}
		l.Pair[1] = map[string]bool{"p": true}
		l.Nested.Names, l.Nested.Deep = []string{"n"}, 9
		l.Since, l.note = time.Unix(1, 0).UTC(), map[string]bool{"kept": true}
		return l
	}
	k := state.Register(state.Spec[limits]{Name: "acme.limits", Initial: initial})

	if got := mustGet(t, k, storedAs(t, k, 1, `{}`)); !reflect.DeepEqual(got, initial()) {
		t.Errorf("nothing was stored: %+v", got)
	}
	want := initial()
	want.Tools, want.Order = map[string]int{"read": 3}, []visits{{Count: 1}}
	want.Nested.Names = nil
	stored := `{"tools": {"read": 3}, "order": [{"count": 1}], "nested": {"names": null}, "max": 5}`
	if got := mustGet(t, k, storedAs(t, k, 1, stored)); !reflect.DeepEqual(got, want) {
		t.Errorf("a part was stored:\n%+v\n%+v", got, want)
	}
	written := limits{
		Tools: map[string]int{},
		Order: []visits{},
		Extra: &visits{},
		Any:   map[string]any{},
		Since: time.Unix(2, 0).UTC(),
	}
	written.Pair = [2]map[string]bool{{}, {}}
	values := valuesOf(t, k.With(nil, written))
	got := mustGet(t, k, schemaWith(t, k).Restore(state.SchemaInfo{}, values, nil))
	if got.note = nil; !reflect.DeepEqual(got, written) {
		t.Errorf("everything was stored:\n%+v\n%+v", got, written)
	}
	if len(shared) != 2 || shared["search"] != 1 {
		t.Errorf("the map of all initial values has changed: %v", shared)
	}
}

// TestStateOfAnotherType: the error names the stored and the expected type, and the
// other states remain readable.
func TestStateOfAnotherType(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[visits]{Name: "acme.visits"})
	for stored, want := range map[string]string{
		`42`:               `stored as number, but state_test.visits is expected`,
		`["x"]`:            `stored as array, but state_test.visits is expected`,
		`{"count": "two"}`: `stored as string in count, but state_test.visits is expected`,
	} {
		s := storedAs(t, k, 1, stored)
		for range 2 { // the error does not go away
			_, err := k.Get(s)
			wantError(t, err, codes.StateUnreadable, `"acme.visits"`, want)
		}
		if v := valuesOf(t, s); string(v[0].Data) != stored {
			t.Errorf("the stored value has become %s", v[0].Data)
		}
	}
	_, err := k.Get(storedAs(t, k, 1, `{"count": `))
	wantError(t, err, codes.StateUnreadable, `"acme.visits"`, "state_test.visits")

	// Two keys of one name, which no agent can have: the second one's error names both
	// types.
	twin := state.Register(state.Spec[limits]{Name: "acme.visits"})
	var s state.States
	if err := json.Unmarshal([]byte(`{"states": {"acme.visits": {"count": 1}}}`), &s); err != nil {
		t.Fatal(err)
	}
	if got := mustGet(t, k, &s); got.Count != 1 {
		t.Errorf("%+v", got)
	}
	_, err = twin.Get(&s)
	wantError(t, err, codes.StateUnreadable, "state_test.visits", "state_test.limits")
}

// run returns a context with a run that has these states.
func run(s *state.States) (context.Context, *state.Live) {
	live := state.NewLive(s)
	return state.ContextWith(context.Background(), live), live
}

// TestStateUpdateInParallel: no update is lost, and a read never sees half of one.
func TestStateUpdateInParallel(t *testing.T) {
	t.Parallel()
	a := state.Register(state.Spec[visits]{Name: "acme.a"})
	b := state.Register(state.Spec[visits]{Name: "acme.b"})
	ctx, live := run(nil)
	add := func(v visits) visits {
		return visits{v.Count + 1, fmt.Sprint(v.Count + 1)}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				for _, k := range []*state.Key[visits]{a, b} {
					if _, err := k.Update(ctx, add); err != nil {
						t.Error(err)
					}
					if v, err := k.Load(ctx); err != nil || v.Last != fmt.Sprint(v.Count) {
						t.Errorf("%+v, %v", v, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if x, y := mustGet(t, a, live.Now()), mustGet(t, b, live.Now()); x.Count != 1600 || y.Count != 1600 {
		t.Errorf("%d and %d of 1600 updates are there", x.Count, y.Count)
	}
}

type dubious struct {
	Value any `json:"value"`
}

// TestStateUpdateFails: nothing changes, and no value is returned.
// TestStateValidate: a value that the middleware cannot use is neither read nor written,
// and stays as it is in the store.
func TestStateValidate(t *testing.T) {
	t.Parallel()
	validate := func(v visits) error {
		if v.Count < 0 {
			return fmt.Errorf("count is %d", v.Count)
		}
		return nil
	}
	shown := state.Register(state.Spec[visits]{Name: "acme.visits", Validate: validate})
	hidden := state.Register(state.Spec[visits]{Name: "acme.secret", Validate: validate, Redact: func(visits) any {
		return "hidden"
	}})
	migrated := state.Register(state.Spec[visits]{Name: "acme.older", Version: 2, Validate: validate,
		Migrations: map[int]state.Migration{
			1: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"count": -2}`), nil },
		}})
	for want, s := range map[string]struct {
		key    *state.Key[visits]
		states *state.States
	}{
		`The stored value of the state "acme.visits" is invalid: count is -5.`: {shown,
			storedAs(t, shown, 1, `{"count": -5}`)},
		`The stored value of the state "acme.secret" is invalid.`: {hidden,
			storedAs(t, hidden, 1, `{"count": -5}`)},
		`The stored value of the state "acme.older" is invalid: count is -2.`: {migrated,
			storedAs(t, migrated, 1, `{"count": 1}`)},
	} {
		ctx, live := run(s.states)
		for range 2 { // the error does not go away
			_, err := s.key.Load(ctx)
			wantError(t, err, codes.StateUnreadable)
			if e := holdfast.AsError(err); e.Message != want || e.Unwrap() == nil {
				t.Errorf("%q, want %q and its cause", e.Message, want)
			}
		}
		if live.Now() != s.states {
			t.Errorf("%s: the states have changed", want)
		}
	}

	ctx, live := run(storedAs(t, shown, 1, `{"count": 1}`))
	before := live.Now()
	_, err := shown.Update(ctx, func(v visits) visits { return visits{Count: v.Count - 2} })
	wantError(t, err, codes.StateUnwritable, `The new value of the state "acme.visits" is invalid: count is -1.`)
	if live.Now() != before {
		t.Error("an invalid value was written")
	}
	if v, err := shown.Update(ctx, func(v visits) visits { return visits{Count: v.Count + 1} }); err != nil ||
		v.Count != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	if v := mustGet(t, shown, storedAs(t, shown, 1, "null")); v != (visits{}) {
		t.Errorf("null: %+v", v)
	}
}

func TestStateUpdateFails(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[dubious]{Name: "acme.dubious"})
	ctx, live := run(k.With(nil, dubious{1}))
	before := live.Now()
	v, err := k.Update(ctx, func(dubious) dubious { return dubious{make(chan int)} })
	wantError(t, err, codes.StateUnwritable, `"acme.dubious" cannot be written as JSON`, "chan int")
	if v.Value != nil || live.Now() != before {
		t.Errorf("%+v, changed: %v", v, live.Now() != before)
	}
	if text := panicText(func() { _, _ = k.Update(ctx, func(dubious) dubious { panic("oh") }) }); text != "oh" ||
		live.Now() != before {
		t.Errorf("panic %q, changed: %v", text, live.Now() != before)
	}
	if v, err := k.Update(ctx, func(dubious) dubious { return dubious{"good"} }); err != nil || v.Value != "good" {
		t.Errorf("after a failed one: %+v, %v", v, err)
	}

	ctx, live = run(storedAs(t, k, 2, `{}`))
	_, err = k.Update(ctx, func(v dubious) dubious { return v })
	wantError(t, err, codes.StateTooNew)
	if got := valuesOf(t, live.Now()); got[0].Version != 2 {
		t.Errorf("%+v", got)
	}
}

func TestStateOutsideARun(t *testing.T) {
	t.Parallel()
	k := state.Register(state.Spec[visits]{Name: "acme.visits"})
	for _, ctx := range []context.Context{context.Background(),
		holdfast.ContextWithRun(context.Background(), &holdfast.RunContext{})} {
		if _, err := k.Load(ctx); !errors.Is(err, holdfast.ErrNoRun) {
			t.Errorf("Load: %v", err)
		}
		if _, err := k.Update(ctx, func(v visits) visits { return v }); !errors.Is(err, holdfast.ErrNoRun) {
			t.Errorf("Update: %v", err)
		}
	}
}

// TestStateFirstReadsInParallel: one reader migrates and decodes; all see the value.
func TestStateFirstReadsInParallel(t *testing.T) {
	t.Parallel()
	var steps atomic.Int32
	k := state.Register(state.Spec[visits]{Name: "acme.visits", Version: 2, Migrations: map[int]state.Migration{
		1: func(json.RawMessage) (json.RawMessage, error) {
			steps.Add(1)
			return json.RawMessage(`{"count": 2}`), nil
		},
	}})
	known := storedAs(t, k, 1, `{}`)
	var unknown state.States
	if err := json.Unmarshal([]byte(`{"states": {"acme.visits": {}}}`), &unknown); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*state.States{known, &unknown} {
		steps.Store(0)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if v, err := k.Get(s); err != nil || v.Count != 2 {
					t.Errorf("%+v, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := steps.Load(); n != 1 {
			t.Errorf("migrated %d times", n)
		}
	}
}
