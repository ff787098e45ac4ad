package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// history is a thread's messages: the path from the first to the leaf, and the
// ids that are in the tree but not on the path.
type history struct {
	path      []agui.Message
	raw       [][]byte // as stored, beside path
	index     map[string]int
	elsewhere map[string]string // id to role
	queued    map[string]bool   // user messages that wait for open calls
	calls     map[string]bool   // tool call ids of the whole tree
}

func newHistory() *history {
	return &history{index: map[string]int{}, elsewhere: map[string]string{}, calls: map[string]bool{}}
}

// add appends a message to the path.
func (h *history) add(m agui.Message, raw []byte) {
	h.index[m.ID] = len(h.path)
	h.path = append(h.path, m)
	h.raw = append(h.raw, raw)
	h.noteCalls(&m)
}

func (h *history) noteCalls(m *agui.Message) {
	for i := range m.ToolCalls {
		h.calls[m.ToolCalls[i].ID] = true
	}
}

// arguments returns the arguments of a call on the path, as the model wrote them.
func (h *history) arguments(call string) string {
	for i := len(h.path) - 1; i >= 0; i-- {
		for j := range h.path[i].ToolCalls {
			if h.path[i].ToolCalls[j].ID == call {
				return h.path[i].ToolCalls[j].Function.Arguments
			}
		}
	}
	return ""
}

// wholeFrom returns the last message that belongs to what the message at a place
// began: its calls' results, and reasoning between them. It reports whether all its
// calls have a result by then.
func (h *history) wholeFrom(at int) (end int, whole bool) {
	open := map[string]bool{}
	for i := range at + 1 {
		for _, c := range h.path[i].ToolCalls {
			open[c.ID] = true
		}
		delete(open, h.path[i].ToolCallID)
	}
	for end = at; end+1 < len(h.path); end++ {
		next := &h.path[end+1]
		result := next.Role == string(holdfast.RoleTool)
		if !result && (len(open) == 0 || next.Role == string(holdfast.RoleUser) || next.Role == string(holdfast.RoleAssistant)) {
			break
		}
		delete(open, next.ToolCallID)
	}
	return end, len(open) == 0
}
