package audit

import (
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// messageTree checks the tree of messages, and that the calls on the path of the head have
// their results.
func (a *audit) messageTree() {
	for i := range a.messages {
		s := &a.messages[i]
		m, err := agui.DecodeMessage(s.Data)
		if err != nil {
			a.cannotRead("message", "message "+s.ID, err)
		}
		a.tree[s.ID] = &auditMessage{Message: m, parent: s.Parent}
		for _, c := range m.ToolCalls {
			a.calls[c.ID] = true
		}
	}
	a.branches()
	for i := range a.messages {
		id := a.messages[i].ID
		if m := a.tree[id]; m.Role == string(holdfast.RoleTool) && !a.callBefore(m) {
			a.add("result_without_call", "message %s is the result of call %s, which no message before it makes", id,
				m.ToolCallID)
		}
	}
	a.results()
	a.activities()
	for _, raw := range a.st.Queued {
		if _, err := agui.DecodeMessage(raw); err != nil {
			a.cannotRead("message", "a message that waits for open calls", err)
		}
	}
}

// branches checks that every message leads back to a first one.
func (a *audit) branches() {
	leads := map[string]bool{"": true}
	for i := range a.messages {
		var way []string
		on := map[string]bool{}
		id := a.messages[i].ID
		for !leads[id] && !on[id] && a.tree[id] != nil {
			on[id] = true
			way = append(way, id)
			id = a.tree[id].parent
		}
		switch {
		case on[id]:
			a.add("message_cycle", "message %s comes before itself", id)
		case !leads[id]:
			a.add("message_hole", "message %s follows %s, which is not there", way[len(way)-1], id)
		}
		for _, id := range way {
			leads[id] = true // or it was reported
		}
	}
}

// path returns the messages up to a leaf, the first one first. It reports false for a hole
// or a cycle.
func (a *audit) path(leaf string) ([]*auditMessage, bool) {
	var path []*auditMessage
	for id := leaf; id != ""; {
		m := a.tree[id]
		if m == nil || len(path) >= len(a.tree) {
			return nil, false
		}
		path = append(path, m)
		id = m.parent
	}
	slices.Reverse(path)
	return path, true
}

// callBefore reports whether a message before the result makes its call.
func (a *audit) callBefore(result *auditMessage) bool {
	steps := 0
	for m := a.tree[result.parent]; m != nil && steps <= len(a.tree); m = a.tree[m.parent] {
		if slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == result.ToolCallID }) {
			return true
		}
		steps++
	}
	return false
}

// results checks that each call on the path of the head has one result or is open.
func (a *audit) results() {
	path, whole := a.path(a.st.Leaf)
	if !whole {
		return // it was reported
	}
	open, made := map[string]bool{}, map[string]bool{}
	var order []string
	for _, m := range path {
		for _, c := range m.ToolCalls {
			open[c.ID], made[c.ID] = true, true
			order = append(order, c.ID)
		}
		if m.Role != string(holdfast.RoleTool) {
			continue
		}
		if made[m.ToolCallID] && !open[m.ToolCallID] {
			a.add("call_answered_twice", "message %s is another result of call %s", m.ID, m.ToolCallID)
		}
		delete(open, m.ToolCallID)
	}
	for _, c := range a.st.Calls {
		if !open[c.ID] {
			a.add("open_call_unknown", "the head holds call %s open, which has a result or is not made", c.ID)
		}
		delete(open, c.ID)
	}
	for _, id := range order {
		if open[id] {
			a.add("call_without_result", "call %s has no result, and is not open", id)
			delete(open, id)
		}
	}
}
