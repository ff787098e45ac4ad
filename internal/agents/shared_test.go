package agents

import (
	"encoding/json"
	"errors"
	"slices"
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
		{predicts("", "a", "/a"), "needs a tool and an argument"},
		{predicts("w", "", "/a"), "needs a tool and an argument"},
		{predicts("w", "a", ""), "no JSON Pointer to a member"},
		{predicts("w", "a", "a"), "no JSON Pointer to a member"},
		{predicts("w", "a", "/a/__proto__/b"), "a name that clients refuse"},
		{predicts("w", "a", "/a", "w", "b", "/a/b"), "neither may hold the other"},
		{predicts("w", "a", "/a", "w", "b", "/a"), "neither may hold the other"},
	} {
		if _, err := newShared(&holdfast.Agent{Name: "a", State: &c.shared}); err == nil ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `agent "a"`) {
			t.Errorf("%+v: %v, want %s", c.shared, err, c.want)
		}
	}
}

// predicts returns options with predictions of a tool, an argument and a path each.
func predicts(words ...string) (o sharedstate.Options) {
	for p := range slices.Chunk(words, 3) {
		o.Predict = append(o.Predict, sharedstate.Prediction{Tool: p[0], Argument: p[1], Path: p[2]})
	}
	return o
}

// TestPredictions: what of the predictions frontends are told, and which places a document has.
func TestPredictions(t *testing.T) {
	t.Parallel()
	o := predicts("w", "a", "/a", "w", "b", "/ab", "v", "c", "/c~1d", "w", "d", "/e/f")
	s, err := newShared(&holdfast.Agent{State: &o})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(s.Told()), `[{"state_key":"a","tool":"w","tool_argument":"a"},`+
		`{"state_key":"ab","tool":"w","tool_argument":"b"},{"state_key":"c/d","tool":"v","tool_argument":"c"}]`; got !=
		want {
		t.Errorf("frontends are told %s, want %s", got, want)
	}
	if n := len(s.Predictions("w")); n != 3 || len(s.Predictions("x")) != 0 || (*Shared)(nil).Predictions("w") != nil {
		t.Errorf("w has %d predictions", n)
	}
	for place, want := range map[string]bool{"/a": true, "/b/c": true, "/l/0": false, "/l/0/x": true, "/l/1/x": false,
		"/n/x": false, "/b/c/d": false} {
		if got := HasPlace(` {"b": {}, "l": [ {} ], "n": 1}`, place); got != want {
			t.Errorf("the place %s is there: %t", place, got)
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
	large := json.RawMessage(`"` + strings.Repeat("x", maxState-2) + `"`)
	if err := nothing.Check(t.Context(), large); err != nil {
		t.Errorf("a state of %d bytes is refused: %v", len(large), err)
	}
	var refused *holdfast.Error
	if err := nothing.Check(t.Context(), append(large, ' ')); !errors.As(err, &refused) ||
		refused.Code != codes.StateInvalid || !strings.Contains(refused.Message, "8388609 bytes, of 8388608") {
		t.Errorf("a state of %d bytes gets %v", len(large)+1, err)
	}
	if _, err := newShared(&holdfast.Agent{State: &sharedstate.Options{Schema: json.RawMessage(`{"type":1}`)}}); err ==
		nil {
		t.Error("a schema that is none is taken")
	}
}
