package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/tools"
)

// TestUpdateState: a patch is applied as a whole or not at all, and the model is told why not.
func TestUpdateState(t *testing.T) {
	t.Parallel()
	tool := tools.UpdateState()
	op := func(op, path string, value any) m { return m{"op": op, "path": path, "value": value} }
	for _, c := range []struct {
		state string
		patch []m
		says  string
		want  string
	}{
		{`{"a":[1]}`, []m{op("add", "/a/-", m{"b": nil})}, "Changed.", `{"a":[1,{"b":null}]}`},
		{`null`, []m{op("add", "/a", 1)}, "Changed.", `{"a":1}`},
		{`{"a":1}`, []m{op("replace", "/a", nil), {"op": "copy", "from": "/a", "path": "/b"}}, "Changed.",
			`{"a":null,"b":null}`},
		{`{"a":1}`, []m{op("add", "/b", 2), {"op": "remove", "path": "/c"}},
			"error: nothing was changed: operation 1 (remove /c): there is nothing at this place", `{"a":1}`},
		{`{"a":1}`, []m{op("test", "/a", 2)},
			"error: nothing was changed: operation 0 (test /a): the value there is another one", `{"a":1}`},
		{`{"a":1}`, []m{op("swap", "/a", 2)}, `error: nothing was changed: operation 0 has the unknown op "swap"`,
			`{"a":1}`},
	} {
		state := json.RawMessage(c.state)
		if got := use(t, tool, m{"patch": c.patch}, &state); got != c.says || string(state) != c.want {
			t.Errorf("%v on %s: %q, and the state is %s", c.patch, c.state, got, state)
		}
	}
}
