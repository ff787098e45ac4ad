package agents

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// TestShown: what a model is shown of a state, and how large it is if that is too much.
func TestShown(t *testing.T) {
	t.Parallel()
	const doc = `{ "a/b": {"c~d": [1, "two  spaces", null]}, "n": 12345678901234567890.10, "": {"": true} }`
	for _, c := range []struct {
		shared   *sharedstate.Options
		state    string
		want     string
		tooLarge int
	}{
		{nil, doc, "", 0},
		{&sharedstate.Options{}, doc, "", 0},
		{&sharedstate.Options{Show: "none"}, doc, "", 0},
		{&sharedstate.Options{Show: "all"}, "", "", 0},
		{&sharedstate.Options{Show: "all"}, "null", "", 0},
		{&sharedstate.Options{Show: "all"}, `[ 1, 1.0 ]`, `[1,1.0]`, 0},
		{
			&sharedstate.Options{Show: "all"}, doc,
			`{"a/b":{"c~d":[1,"two  spaces",null]},"n":12345678901234567890.10,"":{"":true}}`, 0,
		},
		{
			&sharedstate.Options{Show: "paths", Paths: []string{"/n", "/a~1b/c~0d/1", "/a~1b/c~0d/2", "//"}}, doc,
			`{"/n":12345678901234567890.10,"/a~1b/c~0d/1":"two  spaces","/a~1b/c~0d/2":null,"//":true}`, 0,
		},
		{&sharedstate.Options{Show: "paths", Paths: []string{"/no", "/n/1", "/a~1b/c~0d/3", "/a~1b/c~0d/01"}}, doc,
			`{}`, 0},
		{&sharedstate.Options{Show: "paths", Paths: []string{""}}, `[1]`, `{"":[1]}`, 0},
		{&sharedstate.Options{Show: "all", MaxBytes: 7}, `"12345" `, `"12345"`, 0},
		{&sharedstate.Options{Show: "all", MaxBytes: 6}, `"12345" `, "", 7},
		{&sharedstate.Options{Show: "all"}, `"` + strings.Repeat("x", 16<<10) + `"`, "", 16<<10 + 2},
	} {
		s, err := newShared(&holdfast.Agent{State: c.shared})
		if err != nil {
			t.Fatal(err)
		}
		if got, tooLarge := s.Shown(json.RawMessage(c.state)); string(got) != c.want || tooLarge != c.tooLarge {
			t.Errorf("of %s is shown %s, %d; want %s, %d", c.state, got, tooLarge, c.want, c.tooLarge)
		}
	}
}

// TestStateMistakes: what cannot be said of the shared state.
func TestStateMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shared sharedstate.Options
		want   string
	}{
		{sharedstate.Options{Show: "some"}, `show cannot be "some"`},
		{sharedstate.Options{Show: "paths"}, "needs paths"},
		{sharedstate.Options{Show: "all", Paths: []string{"/a"}}, "only for show: paths"},
		{sharedstate.Options{Show: "paths", Paths: []string{"a"}}, "no JSON Pointer"},
		{sharedstate.Options{Show: "paths", Paths: []string{"/a~2"}}, "no JSON Pointer"},
		{sharedstate.Options{At: "begin"}, `at cannot be "begin"`},
		{sharedstate.Options{MaxBytes: -1}, "negative"},
	} {
		if _, err := newShared(&holdfast.Agent{Name: "a", State: &c.shared}); err == nil ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `agent "a"`) {
			t.Errorf("%+v: %v, want %s", c.shared, err, c.want)
		}
	}
}

// TestCheckState: a state that does not fit is refused with everything that is wrong with it, and none always
// fits.
func TestCheckState(t *testing.T) {
	t.Parallel()
	form, err := newShared(&holdfast.Agent{Name: "a",
		State: &sharedstate.Options{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}` +
			`},"required":["n","m"]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for state, wrong := range map[string]int{
		"": 0, "null": 0, ` null `: 0, `{"n":1,"m":2}`: 0, `{"n":"1"}`: 2, `[]`: 1, `{`: 1,
	} {
		var refused *holdfast.Error
		switch err := form.Check(t.Context(), json.RawMessage(state)); {
		case wrong == 0 && err != nil:
			t.Errorf("%q is refused: %v", state, err)
		case wrong > 0 && (!errors.As(err, &refused) || refused.Code != codes.StateInvalid):
			t.Errorf("%q gets %v", state, err)
		case wrong > 0:
			if got := refused.Details["violations"].([]string); len(got) != wrong {
				t.Errorf("%q has the violations %q, want %d", state, got, wrong)
			}
		}
	}
	var nothing *Shared
	if err := nothing.Check(t.Context(), json.RawMessage("1")); err != nil {
		t.Errorf("an agent without a schema refuses: %v", err)
	}
	if _, err := newShared(&holdfast.Agent{State: &sharedstate.Options{Schema: json.RawMessage(`{"type":1}`)}}); err ==
		nil {
		t.Error("a schema that is none is taken")
	}
}
