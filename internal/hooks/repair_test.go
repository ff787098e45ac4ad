package hooks

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// seen is what a model was shown, in short.
func seen(messages []holdfast.Message) string {
	var parts []string
	for _, m := range messages {
		s := string(m.Role)
		for _, c := range m.Calls {
			s += " calls " + c.ID
		}
		if m.CallID != "" {
			s += " of " + m.CallID
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func TestRepair(t *testing.T) {
	user := holdfast.Message{Role: holdfast.RoleUser}
	asks := func(ids ...string) (m holdfast.Message) {
		m.Role = holdfast.RoleAssistant
		for _, id := range ids {
			m.Calls = append(m.Calls, holdfast.ToolCall{ID: id})
		}
		return m
	}
	result := func(id string) holdfast.Message { return holdfast.Message{Role: holdfast.RoleTool, CallID: id} }
	for _, c := range []struct {
		in   []holdfast.Message
		want string
	}{
		{[]holdfast.Message{user, asks("a", "b"), result("b"), result("a"), user},
			"user, assistant calls a calls b, tool of b, tool of a, user"},
		{[]holdfast.Message{result("a"), user}, "user"},
		{[]holdfast.Message{user, asks("a", "b"), result("b"), user},
			"user, assistant calls a calls b, tool of b, tool of a, user"},
		{[]holdfast.Message{user, asks("a")}, "user, assistant calls a, tool of a"},
		{[]holdfast.Message{user, asks("a"), result("a"), result("a"), result("z")},
			"user, assistant calls a, tool of a"},
	} {
		got := repair(c.in)
		if seen(got) != c.want || !wellFormed(got) {
			t.Errorf("of %s the model sees %s, want %s", seen(c.in), seen(got), c.want)
		}
		if wellFormed(c.in) != (seen(c.in) == c.want) {
			t.Errorf("wellFormed(%s) is %v", seen(c.in), wellFormed(c.in))
		}
	}
}
