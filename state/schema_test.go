package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/state"
)

// key makes a state without anything special.
func key(name string, version int) *state.Key[visits] {
	return state.Register(state.Spec[visits]{Name: name, Version: version})
}

// TestSchemaIsDeterministic: whatever the order of registration and use, the
// signature is the sorted names, and each state has a version.
func TestSchemaIsDeterministic(t *testing.T) {
	t.Parallel()
	c, a, b := key("acme.c", 3), key("acme.a", 1), key("acme.b", 0)
	want := state.SchemaInfo{
		Signature:     "acme.a,acme.b,acme.c",
		Version:       1,
		StateVersions: map[string]int{"acme.a": 1, "acme.b": 1, "acme.c": 3},
	}
	for _, order := range [][]holdfast.State{{a, b, c}, {c, b, a}, {b, c, a, b, a}} {
		if got := schemaWith(t, order...).Info(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	}
	if schemaWith(t, a).Empty() || !schemaWith(t).Empty() || schemaWith(t).Info().Signature != "" {
		t.Error("only the schema without states is empty")
	}
}

// TestSchemaWithADuplicateName: the error names both types.
func TestSchemaWithADuplicateName(t *testing.T) {
	t.Parallel()
	twin := state.Register(state.Spec[failures]{Name: "acme.a"})
	_, err := state.NewSchema(key("acme.a", 1), twin)
	if err == nil {
		t.Fatal("two states of one name were taken")
	}
	for _, part := range []string{`"acme.a"`, "state_test.visits", "state_test.failures"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
}

func TestSchemaCompare(t *testing.T) {
	t.Parallel()
	a, b, b2, c, z := key("acme.a", 1), key("acme.b", 1), key("acme.b", 2), key("acme.c", 1), key("acme.z", 1)
	old := schemaWith(t, a, b)
	for name, test := range map[string]struct {
		schema *state.Schema
		from   *state.States
		want   state.SchemaChange
	}{
		"none": {old, nil, state.SchemaChange{Upgrade: true, New: "acme.a,acme.b"}},
		"older": {old, fromForm(t, `{"states": {"acme.a": {}}}`),
			state.SchemaChange{Upgrade: true, New: "acme.a,acme.b"}},
		"the same":  {old, old.New(), state.SchemaChange{}},
		"unchanged": {schemaWith(t, b, a), old.New(), state.SchemaChange{}},
		"removed":   {schemaWith(t, b), old.New(), state.SchemaChange{Removed: []string{"acme.a"}}},
		"the last":  {schemaWith(t, a), old.New(), state.SchemaChange{Removed: []string{"acme.b"}}},
		"added":     {schemaWith(t, a, b, c, z), old.New(), state.SchemaChange{Added: []string{"acme.c", "acme.z"}}},
		"all new":   {old, schemaWith(t).New(), state.SchemaChange{Added: []string{"acme.a", "acme.b"}}},
		"all gone":  {schemaWith(t), old.New(), state.SchemaChange{Removed: []string{"acme.a", "acme.b"}}},
		"version": {schemaWith(t, a, b2), old.New(),
			state.SchemaChange{Changed: []state.VersionChange{{Name: "acme.b", From: 1, To: 2}}}},
		"everything": {schemaWith(t, b2, z), old.New(),
			state.SchemaChange{Removed: []string{"acme.a"}, Added: []string{"acme.z"},
				Changed: []state.VersionChange{{Name: "acme.b", From: 1, To: 2}}}},
		"not sorted": {old, fromForm(t,
			`{"schemaSignature": "acme.b,,acme.a,acme.b", "stateVersions": {"acme.a": 1, "acme.b": 1}}`),
			state.SchemaChange{}},
	} {
		got := test.schema.Compare(test.from)
		test.want.Old, test.want.New = test.from.Info().Signature, test.schema.Info().Signature
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n%+v\n%+v", name, got, test.want)
		}
		if any := name != "the same" && name != "unchanged" && name != "not sorted"; got.Any() != any {
			t.Errorf("%s: there is a change: %v", name, got.Any())
		}
		if again := test.schema.Compare(test.schema.Adopt(test.from)); again.Any() {
			t.Errorf("%s: it is reported again: %+v", name, again)
		}
	}
	if got := state.ShortNames([]string{"holdfast.breaker", "acme.team.budget"}); got != "breaker, budget" {
		t.Error(got)
	}
}

// TestRollbackLosesNothing: a program that lacks a state carries it unchanged through
// many runs, and the program that has the state can still use it.
func TestRollbackLosesNothing(t *testing.T) {
	t.Parallel()
	a, b := key("acme.a", 1), key("acme.b", 4)
	older, newer := schemaWith(t, a), schemaWith(t, a, b)
	raw := `{ "count" : 7, "of a later version": [1e3, "<"] }`
	s := newer.Restore(newer.Info(), []state.Value{{Name: "acme.b", Version: 4, Data: json.RawMessage(raw)}}, nil)
	for i := range 20 {
		s = older.NewRun(older.Adopt(older.Restore(s.Info(), valuesOf(t, s), nil)))
		s = a.With(s, visits{Count: i})
	}
	values := valuesOf(t, s)
	if len(values) != 2 || values[1].Version != 4 || string(values[1].Data) != raw {
		t.Fatalf("%+v", values)
	}
	s = newer.Restore(s.Info(), values, nil)
	if x, y := mustGet(t, a, s).Count, mustGet(t, b, s).Count; x != 19 || y != 7 {
		t.Errorf("%d and %d", x, y)
	}
}

// TestNewRun: states of scope run are reset; the others keep their values.
func TestNewRun(t *testing.T) {
	t.Parallel()
	perRun := state.Register(state.Spec[visits]{
		Name:    "acme.run",
		Scope:   state.ScopeRun,
		Initial: func() visits { return visits{Last: "none"} },
	})
	thread := state.Register(state.Spec[visits]{Name: "acme.thread", Scope: state.ScopeThread})
	schema := schemaWith(t, perRun, thread)
	s := perRun.With(thread.With(schema.New(), visits{Count: 1}), visits{Count: 2})
	next := schema.NewRun(s)
	if x, y := mustGet(t, perRun, next), mustGet(t, thread, next); x.Last != "none" || x.Count != 0 || y.Count != 1 {
		t.Errorf("%+v, %+v", x, y)
	}
	if mustGet(t, perRun, s).Count != 2 {
		t.Error("the previous run's states have changed")
	}
	if schema.NewRun(next) != next || schema.NewRun(nil) != nil {
		t.Error("there was nothing to reset")
	}
}

// counter is a state whose third version is reached in two steps.
type counterV3 struct {
	Total int    `json:"total"`
	Unit  string `json:"unit"`
}

func counterSteps(count *[]string) map[int]state.Migration {
	type v1 struct{ N int }
	type v2 struct{ Total int }
	return map[int]state.Migration{
		1: state.Migrate(func(old v1) (v2, error) {
			*count = append(*count, "1-2")
			return v2{old.N}, nil
		}),
		2: state.Migrate(func(old v2) (counterV3, error) {
			*count = append(*count, "2-3")
			if old.Total < 0 {
				return counterV3{}, errors.New("a negative total")
			}
			return counterV3{old.Total, "calls"}, nil
		}),
	}
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	var steps []string
	k := state.Register(state.Spec[counterV3]{Name: "acme.counter", Version: 3, Migrations: counterSteps(&steps)})
	for version, test := range map[int]struct{ stored, steps string }{
		1: {`{"N": 5}`, "1-2 2-3"},
		2: {`{"Total": 5}`, "2-3"},
		3: {`{"total": 5, "unit": "calls"}`, ""},
	} {
		steps = nil
		s := storedAs(t, k, version, test.stored)
		if len(steps) > 0 {
			t.Errorf("from %d: migrated before it was read", version)
		}
		for range 2 {
			if got := mustGet(t, k, s); got != (counterV3{5, "calls"}) {
				t.Errorf("from %d: %+v", version, got)
			}
		}
		if got := strings.Join(steps, " "); got != test.steps {
			t.Errorf("from %d: steps %q, want %q", version, got, test.steps)
		}
		if got := valuesOf(t, s)[0]; string(got.Data) != test.stored || got.Version != version {
			t.Errorf("from %d: a read has changed the stored value: %+v", version, got)
		}
		if got := valuesOf(t, k.With(s, counterV3{6, "x"}))[0]; got.Version != 3 {
			t.Errorf("from %d: the written value has version %d", version, got.Version)
		}
	}
}

// TestMigrationsThatFail: the error names the state and the versions, nothing has
// changed, and the next read tries again.
func TestMigrationsThatFail(t *testing.T) {
	t.Parallel()
	var steps []string
	good := counterSteps(&steps)
	with := func(step state.Migration) map[int]state.Migration {
		return map[int]state.Migration{1: good[1], 2: step}
	}
	for name, test := range map[string]struct {
		steps  map[int]state.Migration
		stored string
		want   []string
	}{
		"fails":       {good, `{"N": -1}`, []string{"from version 2 to 3 failed", "a negative total"}},
		"cannot read": {good, `{"N": "x"}`, []string{"from version 1 to 2 failed", "cannot unmarshal string"}},
		"panics": {with(func(json.RawMessage) (json.RawMessage, error) { panic("oh no") }), `{}`,
			[]string{"from version 2 to 3 failed", "panic: oh no"}},
		"no JSON": {with(func(json.RawMessage) (json.RawMessage, error) { return nil, nil }), `{}`,
			[]string{"from version 2 to 3 failed", "it did not return JSON"}},
		"missing": {with(nil), `{}`,
			[]string{"has version 1 and version 3 is needed", "no migration from 2 to 3"}},
		"first absent": {map[int]state.Migration{2: good[2]}, `{}`, []string{"no migration from 1 to 2"}},
		"spoils": {with(func(old json.RawMessage) (json.RawMessage, error) {
			clear(old)
			return nil, errors.New("half way")
		}), `{"N": 1}`, []string{"half way"}},
	} {
		k := state.Register(state.Spec[counterV3]{Name: "acme.counter", Version: 3, Migrations: test.steps})
		s := storedAs(t, k, 1, test.stored)
		for range 2 {
			_, err := k.Get(s)
			wantError(t, err, codes.StateMigration, append(test.want, `"acme.counter"`)...)
		}
		if got := valuesOf(t, s)[0]; string(got.Data) != test.stored || got.Version != 1 {
			t.Errorf("%s: the stored value has become %+v", name, got)
		}
	}
}

// TestMissingMigrationInLenientMode: the existing steps run, the result is read with
// defaults, and the missing step is reported once.
func TestMissingMigrationInLenientMode(t *testing.T) {
	t.Parallel()
	var steps, told []string
	k := state.Register(state.Spec[counterV3]{
		Name:       "acme.counter",
		Version:    4,
		Migrations: counterSteps(&steps),
		Initial:    func() counterV3 { return counterV3{Unit: "tries"} },
	})
	s := schemaWith(t, k).Restore(state.SchemaInfo{}, []state.Value{
		{Name: "acme.counter", Version: 2, Data: json.RawMessage(`{"Total": 5}`)},
	}, func(name string, from, to int) { told = append(told, fmt.Sprint(name, from, to)) })
	for range 2 {
		if got := mustGet(t, k, s); got != (counterV3{5, "calls"}) {
			t.Errorf("%+v", got)
		}
	}
	if len(told) != 1 || told[0] != "acme.counter2 4" || len(steps) != 1 {
		t.Errorf("told %q, steps %q", told, steps)
	}
}

// TestMigrationsNeeded: Migrations lists what a deployment would have to migrate.
func TestMigrationsNeeded(t *testing.T) {
	t.Parallel()
	var steps []string
	good := state.Register(state.Spec[counterV3]{Name: "acme.good", Version: 3, Migrations: counterSteps(&steps)})
	gap := state.Register(state.Spec[counterV3]{Name: "acme.gap", Version: 5, Migrations: counterSteps(&steps)})
	fine, newer := key("acme.fine", 2), key("acme.newer", 1)
	schema := schemaWith(t, newer, good, fine, gap)
	values := []state.Value{
		{
			Name:    "acme.good",
			Version: 1,
			Data:    json.RawMessage(`{}`),
		},
		{Name: "acme.gap", Version: 1, Data: json.RawMessage(`{}`)},
		{
			Name:    "acme.fine",
			Version: 2,
			Data:    json.RawMessage(`{}`),
		},
		{Name: "acme.newer", Version: 9, Data: json.RawMessage(`{}`)},
		{Name: "acme.unknown", Version: 1, Data: json.RawMessage(`{}`)},
	}
	want := []state.PendingMigration{
		{VersionChange: state.VersionChange{Name: "acme.gap", From: 1, To: 5}, Missing: 3},
		{VersionChange: state.VersionChange{Name: "acme.good", From: 1, To: 3}},
		{VersionChange: state.VersionChange{Name: "acme.newer", From: 9, To: 1}},
	}
	s := schema.Restore(schema.Info(), values, nil)
	if got := schema.Migrations(s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := schema.Migrations(good.With(gap.With(newer.With(s, visits{}), counterV3{}), counterV3{})); got != nil {
		t.Errorf("all were written again, but there are %+v", got)
	}
	if got := schema.Migrations(nil); got != nil || len(steps) > 0 {
		t.Errorf("%+v, %q", got, steps)
	}
}

// TestNewerState: it is refused, found before anything is read, and can be set
// aside until a program knows it.
func TestNewerState(t *testing.T) {
	t.Parallel()
	one, three, z := key("acme.a", 1), key("acme.a", 3), key("acme.z", 1)
	older, newer := schemaWith(t, z, one), schemaWith(t, three)
	s := three.With(newer.New(), visits{Count: 3})
	kept := func(s *state.States) *state.States { return older.Restore(s.Info(), valuesOf(t, s), nil) }

	s = kept(s)
	_, err := one.Get(s)
	wantError(t, err, codes.StateTooNew, `"acme.a" has version 3`, "up to version 1")
	tooNew := []state.VersionChange{{Name: "acme.a", From: 3, To: 1}}
	for name, states := range map[string]*state.States{
		"by its schema": s, "by its value": older.Adopt(s),
		"by both, differently": older.Restore(state.SchemaInfo{Signature: "acme.a", Version: 1,
			StateVersions: map[string]int{"acme.a": 2}},
			valuesOf(t, s), nil),
	} {
		if c := older.Compare(states); !reflect.DeepEqual(c.TooNew, tooNew) || !reflect.DeepEqual(c.Changed, tooNew) {
			t.Errorf("%s: %+v", name, c)
		}
	}

	s = older.Adopt(older.SetAside(s, []string{"acme.a", "acme.z", "acme.unknown"}))
	if c := older.Compare(s); c.Any() || one.Has(s) {
		t.Errorf("set aside: %+v, has %v", c, one.Has(s))
	}
	s = older.SetAside(z.With(one.With(s, visits{Count: 1}), visits{}),
		[]string{"acme.a", "acme.z"}) // written here: nothing to set aside
	for range 3 {
		s = kept(s)
		if got := mustGet(t, one, s).Count; got != 1 {
			t.Errorf("next to the value that was set aside: %d", got)
		}
	}
	want := []state.Value{
		{Name: "acme.a", Version: 1, Data: json.RawMessage(`{"count":1}`)},
		{Name: "acme.a", Version: 3, Data: json.RawMessage(`{"count":3}`), Aside: true},
		{Name: "acme.z", Version: 1, Data: json.RawMessage(`{"count":0}`)},
	}
	if got := valuesOf(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := formText(t, s); !strings.HasSuffix(got, `"newerStates":{"acme.a":{"version":3,"data":{"count":3}}}}`) ||
		got != formText(t, fromForm(t, got)) {
		t.Error(got)
	}
	// A program without any of them keeps them too.
	s = schemaWith(t).Restore(s.Info(), valuesOf(t, s), nil)
	back := newer.Restore(s.Info(), valuesOf(t, s), nil)
	if got := mustGet(t, three, back).Count; got != 3 || len(valuesOf(t, back)) != 2 {
		t.Errorf("%d of %+v", got, valuesOf(t, back))
	}
}

// TestSeveralNewerStates are listed by name, whatever the order of registration.
func TestSeveralNewerStates(t *testing.T) {
	t.Parallel()
	schema := schemaWith(t, key("acme.c", 1), key("acme.a", 1), key("acme.b", 1))
	var values []state.Value
	for _, name := range []string{"acme.b", "acme.c", "acme.a"} {
		values = append(values, state.Value{Name: name, Version: 2, Data: json.RawMessage(`{}`)})
	}
	s := schema.Restore(schema.Info(), values, nil)
	c := schema.Compare(s)
	names := func(changes []state.VersionChange) (out []string) {
		for _, c := range changes {
			out = append(out, c.Name)
		}
		return out
	}
	if want := []string{
		"acme.a",
		"acme.b",
		"acme.c",
	}; !slices.Equal(names(c.TooNew), want) || !slices.Equal(names(c.Changed), want) {
		t.Errorf("%+v", c)
	}
	s = schema.SetAside(s, names(c.TooNew))
	if n := len(valuesOf(t, s)); n != 3 || !valuesOf(t, s)[2].Aside {
		t.Errorf("%+v", valuesOf(t, s))
	}
}

type credentials struct {
	Token string `json:"token"`
	Panic bool   `json:"panic"`
	Bad   bool   `json:"bad"`
}

// TestShown: what asks for it is not shown, neither by the program that knows it,
// nor by one that does not, nor after many runs of that one.
func TestShown(t *testing.T) {
	t.Parallel()
	secret := state.Register(state.Spec[credentials]{Name: "acme.secret", Redact: func(c credentials) any {
		switch {
		case c.Panic:
			panic("oh")
		case c.Bad:
			return func() {}
		}
		return map[string]int{"length": len(c.Token)}
	}})
	open, secret2 := key("acme.open", 1), state.Register(state.Spec[credentials]{Name: "acme.secret", Version: 2})
	schema := schemaWith(t, secret, open)
	if got := schema.Info().Redacted; !slices.Equal(got, []string{"acme.secret"}) {
		t.Errorf("%q", got)
	}
	s := open.With(secret.With(schema.New(), credentials{Token: "tiger"}), visits{Count: 1})
	stored := valuesOf(t, s)
	other, none := schemaWith(t, open), schemaWith(t)
	unknown := none.Adopt(none.Restore(schema.Info(), stored, nil))
	carried := other.Restore(unknown.Info(), valuesOf(t, unknown), nil)
	newer := []state.Value{{Name: "acme.secret", Version: 2, Data: json.RawMessage(`{"token":"tiger"}`)}}
	redactedInfo := state.SchemaInfo{
		Signature:     "acme.secret",
		Version:       1,
		StateVersions: map[string]int{"acme.secret": 3},
		Redacted:      []string{"acme.secret"},
	}
	v3 := []state.Value{{Name: "acme.secret", Version: 3, Data: newer[0].Data}}
	tooNew := schema.Restore(schema.Info(), newer, nil)
	for name, test := range map[string]struct {
		schema *state.Schema
		states *state.States
		want   string
	}{
		"written":  {schema, s, `"acme.secret":{"length":5}`},
		"restored": {schema, schema.Restore(schema.Info(), stored, nil), `"acme.secret":{"length":5}`},
		"unknown":  {other, other.Restore(schema.Info(), stored, nil), `"acme.secret":"[redacted]"`},
		"carried":  {other, carried, `"acme.secret":"[redacted]"`},
		"too new":  {schema, tooNew, `"acme.secret":"[redacted]"`},
		"set aside": {schema, schema.Adopt(schema.SetAside(tooNew, []string{"acme.secret"})),
			`"acme.secret":{"version":2,"data":"[redacted]"}`},
		"redacted since": {schemaWith(t, secret2), schemaWith(t, secret2).Restore(redactedInfo, v3, nil),
			`"acme.secret":"[redacted]"`},
		"unreadable": {schema, storedAs(t, secret, 1, `"tiger"`), `"acme.secret":"[redacted]"`},
		"by nobody":  {schemaWith(t, secret2), secret2.With(nil, credentials{Token: "shown"}), `"shown"`},
		"panics": {schema, secret.With(nil, credentials{Token: "tiger", Panic: true}),
			`"acme.secret":"[redacted]"`},
		"no JSON": {schema, secret.With(nil, credentials{Token: "tiger", Bad: true}),
			`"acme.secret":"[redacted]"`},
		"another key's": {schema, secret2.With(nil, credentials{Token: "tiger"}), `"acme.secret":"[redacted]"`},
	} {
		got, err := test.schema.Shown(test.states)
		if err != nil || !strings.Contains(string(got), test.want) || strings.Contains(string(got), "tiger") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	// Printed and logged values are those that may be shown, also by a program that does not
	// know the state.
	for name, states := range map[string]*state.States{"written": s, "unknown": unknown, "carried": carried,
		"too new": tooNew} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("states", "states", states)
		slog.New(slog.NewTextHandler(&log, nil)).Info("states", "states", states)
		for _, text := range []string{fmt.Sprint(states), fmt.Sprintf("%+v", states), log.String()} {
			if strings.Contains(text, "tiger") || !strings.Contains(text, "acme.secret") ||
				strings.Contains(text, "0xc0") {
				t.Errorf("%s is printed as %s", name, text)
			}
		}
	}
	if got, want := fmt.Sprint(s), `{"schemaSignature":"acme.open,acme.secret","schemaVersion":1,`+
		`"stateVersions":{"acme.open":1,"acme.secret":1},`+
		`"states":{"acme.open":{"count":1},"acme.secret":{"length":5}}}`; got != want {
		t.Errorf("printed as\n%s, want\n%s", got, want)
	}
	if got := (*state.States)(nil).String(); !strings.Contains(got, `"states":{}`) {
		t.Errorf("none are printed as %s", got)
	}
	if got, _ := schema.Shown(s); !strings.Contains(string(got), `"acme.open":{"count":1}`) {
		t.Errorf("what does not ask for it: %s", got)
	}
	if again := valuesOf(t, carried); !again[1].Redacted {
		t.Errorf("%+v", again)
	}
}

type foreign struct{}

func (foreign) StateName() string { return "acme.foreign" }

// TestSchemaOfForeignStates: only keys that this package has made have a place in the
// container.
func TestSchemaOfForeignStates(t *testing.T) {
	t.Parallel()
	if _, err := state.NewSchema(foreign{}); err == nil || !strings.Contains(err.Error(), "acme.foreign") ||
		!strings.Contains(err.Error(), "state_test.foreign") {
		t.Errorf("got %v", err)
	}
}
