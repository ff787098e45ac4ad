package sharedstate_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

type recipe struct {
	Title string   `json:"title"`
	Steps []string `json:"steps"`
	Notes *string  `json:"notes,omitempty"`
}

// TestTyped: what Go writes of a type fits its schema, also where it is null, and other JSON does not.
func TestTyped(t *testing.T) {
	t.Parallel()
	typed := sharedstate.Of[recipe]()
	o := typed.Options()
	if err := o.Validate(); err != nil {
		t.Fatalf("its options are refused: %v", err)
	}
	s, err := schema.Compile(o.Schema)
	if err != nil {
		t.Fatal(err)
	}
	state, err := typed.Change(func(r *recipe) error { r.Title = "Soup"; return nil })(nil)
	if err != nil || string(state) != `{"title":"Soup","steps":null}` {
		t.Fatalf("the first change gives %s, %v", state, err)
	}
	for text, fits := range map[string]bool{
		string(state):                            true,
		`{"title":"Soup","steps":["Cut"]}`:       true,
		`{"title":"Soup"}`:                       false,
		`{"title":"Soup","steps":[],"other":1}`:  false,
		`{"title":"Soup","steps":[],"notes":""}`: true,
	} {
		if err := s.Validate(t.Context(), json.RawMessage(text)); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
	if r, err := typed.Read(state); err != nil || r.Title != "Soup" {
		t.Errorf("%s is read as %v, %v", state, r, err)
	}
}

// TestTypedFails: a change that fails, or finds what is no T, changes nothing.
func TestTypedFails(t *testing.T) {
	t.Parallel()
	typed, no := sharedstate.Of[recipe](), errors.New("no")
	if _, err := typed.Change(func(*recipe) error { return no })(nil); !errors.Is(err, no) {
		t.Errorf("the error is %v", err)
	}
	if _, err := typed.Change(func(*recipe) error { return nil })(json.RawMessage(`{"title":1}`)); err == nil {
		t.Error("a state of another type is changed")
	}
	unwritten := sharedstate.Of[struct {
		Share float64 `json:"share"`
	}]().Change(func(v *struct {
		Share float64 `json:"share"`
	}) error {
		v.Share = math.NaN()
		return nil
	})
	if state, err := unwritten(nil); err == nil {
		t.Errorf("what JSON cannot say is written as %s", state)
	}
	defer func() {
		if recover() == nil {
			t.Error("a type that is no struct is taken")
		}
	}()
	sharedstate.Of[[]string]()
}
