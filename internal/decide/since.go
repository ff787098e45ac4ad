package decide

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// A client can say where it stands instead of sending what it shows: the id of a message, up
// to which it has everything. It is taken at its word about what to send it, and about
// nothing else: the meaning of a request is in its messages.

// stands takes it that the client has every message up to since. If since is not on the
// path, the client shows something else, and gets the snapshot.
func (w *walk) stands(since string, sent []agui.Message) {
	if since == "" {
		return
	}
	w.stood = true
	last, on := w.history.Index[since]
	w.dropped = !on
	for i := range last + 1 {
		w.shown[i] = on
	}
	w.joins(sent)
}

// joins is for a list that begins in the middle of what the client shows: its first known
// message follows those before it in the tree as if they had been sent.
func (w *walk) joins(sent []agui.Message) {
	for i := range sent {
		id := sent[i].ID
		if place, on := w.history.Index[id]; on {
			w.common = place - 1
			return
		}
		if _, elsewhere := w.history.Elsewhere[id]; elsewhere {
			w.tip = w.history.Parents[id]
			w.common = w.branching(id)
			return
		}
	}
}

// branching returns the place on the path where the branch of a message begins; -1 if that is
// not known, or before the first message.
func (w *walk) branching(id string) int {
	for range len(w.history.Parents) + 1 {
		if place, on := w.history.Index[id]; on {
			return place
		}
		id = w.history.Parents[id]
	}
	return -1
}

// waits reports whether a message that waits for the results of calls is missing from the
// list of a client that says where it stands.
func (w *walk) waits(sent []agui.Message) bool {
	missing := len(w.history.Queued)
	for i := range sent {
		if w.history.Queued[sent[i].ID] {
			missing--
		}
	}
	return w.stood && missing > 0
}

// standing returns the id of the last message that the client shows, if it has said where it
// stands, has everything before that message, and shows nothing else.
func (w *walk) standing() string {
	if !w.stood || w.dropped || w.differs {
		return ""
	}
	last, lacks := -1, false
	for i := range w.history.Path {
		switch {
		case w.shown[i] && lacks:
			return ""
		case w.shown[i]:
			last = i
		case !beside(&w.history.Path[i]):
			lacks = true
		}
	}
	if last < 0 {
		return ""
	}
	return w.history.Path[last].ID
}

// beside reports whether clients need not send a message back: many keep reasoning and
// activities to themselves.
func beside(m *agui.Message) bool {
	return m.Role == string(holdfast.RoleReasoning) || m.Role == string(holdfast.RoleActivity)
}
