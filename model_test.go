package holdfast_test

import (
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestContextPlace: facts stand in front of the newest words of the user, whatever has come
// since, and never last.
func TestContextPlace(t *testing.T) {
	t.Parallel()
	const user, assistant, tool = holdfast.RoleUser, holdfast.RoleAssistant, holdfast.RoleTool
	for name, c := range map[string]struct {
		roles []holdfast.Role
		tail  int
		want  int
	}{
		"the newest words":           {roles: []holdfast.Role{user, assistant, user}, want: 2},
		"the words, not the results": {roles: []holdfast.Role{user, assistant, tool}, want: 0},
		"a note in the tail":         {roles: []holdfast.Role{user, assistant, user, user}, tail: 1, want: 2},
		"no words are shown":         {roles: []holdfast.Role{assistant, tool}, want: 0},
		"nothing is shown":           {want: 0},
	} {
		req := &holdfast.ModelRequest{Tail: c.tail}
		for _, role := range c.roles {
			req.Messages = append(req.Messages, holdfast.Message{Role: role})
		}
		if got := req.ContextPlace(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
