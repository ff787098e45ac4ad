package agents

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
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
