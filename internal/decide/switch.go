package decide

import "github.com/holdfast-agents/holdfast"

// Pages with a branch picker go back to a branch that the thread has left, and go on there.
// Their list is then a path of the tree, only not the current one.

// switches reports whether the list goes on from another branch, and says from where.
func (w *walk) switches() bool {
	role, elsewhere := w.history.Elsewhere[w.tip]
	if !elsewhere || w.astray || len(w.Results) > 0 || len(w.Users) == 0 && role != string(holdfast.RoleUser) {
		return false
	}
	w.Switch, w.Resync = w.tip, true
	w.Regenerate = len(w.Users) == 0
	return true
}

// follows reports whether a message of another branch comes after the last one that the
// client shows, with no user message between them: of others, clients may leave some out.
func (w *walk) follows(id string) bool {
	for at := w.history.Parents[id]; at != w.tip; {
		role := w.history.Elsewhere[at]
		i, onPath := w.history.Index[at]
		if onPath {
			role = w.history.Path[i].Role
		}
		if role == "" || role == string(holdfast.RoleUser) {
			return false
		}
		switch {
		case !onPath:
			at = w.history.Parents[at]
		case i > 0:
			at = w.history.Path[i-1].ID
		default:
			at = ""
		}
	}
	return true
}
