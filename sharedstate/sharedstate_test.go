package sharedstate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/sharedstate"
)

// predict returns predictions of tools, each with its path.
func predict(toolsAndPaths ...string) (all []sharedstate.Prediction) {
	for i := 0; i < len(toolsAndPaths); i += 2 {
		all = append(all, sharedstate.Prediction{Tool: toolsAndPaths[i], Argument: "text", Path: toolsAndPaths[i+1]})
	}
	return all
}

// TestValidate: an error says what to write, and what can be written has none.
func TestValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    sharedstate.Options
		want string
	}{
		"nothing":         {sharedstate.Options{}, ""},
		"none":            {sharedstate.Options{Show: "none"}, ""},
		"all":             {sharedstate.Options{Show: "all", At: "end", MaxBytes: 100}, ""},
		"paths":           {sharedstate.Options{Show: "paths", Paths: []string{"/recipe/title", "/a~1b/~0c"}}, ""},
		"the whole":       {sharedstate.Options{Show: "paths", Paths: []string{""}}, ""},
		"another word":    {sharedstate.Options{Show: "some"}, "all, paths or none"},
		"no paths":        {sharedstate.Options{Show: "paths"}, "needs paths"},
		"paths of all":    {sharedstate.Options{Show: "all", Paths: []string{"/a"}}, "only for show: paths"},
		"another place":   {sharedstate.Options{Show: "all", At: "start"}, "it is end"},
		"a bound below 0": {sharedstate.Options{Show: "all", MaxBytes: -1}, "must not be negative"},
		"no slash": {sharedstate.Options{Show: "paths", Paths: []string{"recipe"}},
			"write one like /recipe/title"},
		"a rule":  {sharedstate.Options{Conflict: "agent"}, ""},
		"no rule": {sharedstate.Options{Conflict: "server"}, "refuse, page or agent"},
		"predictions": {sharedstate.Options{Predict: predict("write", "/a/text", "write", "/a/title",
			"read", "/a")}, ""},
		"a prediction of no tool":   {sharedstate.Options{Predict: predict("", "/a")}, "needs a tool and an argument"},
		"a prediction of the whole": {sharedstate.Options{Predict: predict("write", "")}, "to a member"},
		"a prediction of no place":  {sharedstate.Options{Predict: predict("write", "a")}, "to a member"},
		"a prediction that clients refuse": {sharedstate.Options{Predict: predict("write", "/a/constructor")},
			"that clients refuse: constructor"},
		"a prediction within another": {sharedstate.Options{Predict: predict("write", "/a", "write", "/a/b")},
			"neither may hold the other"},
		"no schema":     {sharedstate.Options{Schema: json.RawMessage(`{"type":1}`)}, "schema: "},
		"a lone tilde":  {sharedstate.Options{Show: "paths", Paths: []string{"/a~"}}, "write one like"},
		"an odd escape": {sharedstate.Options{Show: "paths", Paths: []string{"/a~2"}}, "write one like"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.o.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want one that says %q", err, c.want)
			}
		})
	}
}
