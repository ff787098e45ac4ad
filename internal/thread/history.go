package thread

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// History is a thread's messages: the path from the first to the leaf, and the
// ids that are in the tree but not on the path.
type History struct {
	Path      []agui.Message
	Raw       [][]byte // as stored, beside path
	Index     map[string]int
	Elsewhere map[string]string // id to role
	Queued    map[string]bool   // user messages that wait for open calls
	Calls     map[string]bool   // tool call ids of the whole tree
}

func NewHistory() *History {
	return &History{Index: map[string]int{}, Elsewhere: map[string]string{}, Calls: map[string]bool{}}
}

// Add appends a message to the path.
func (h *History) Add(m agui.Message, raw []byte) {
	h.Index[m.ID] = len(h.Path)
	h.Path = append(h.Path, m)
	h.Raw = append(h.Raw, raw)
	h.noteCalls(&m)
}

func (h *History) noteCalls(m *agui.Message) {
	for i := range m.ToolCalls {
		h.Calls[m.ToolCalls[i].ID] = true
	}
}

// Arguments returns the arguments of a call on the path, as the model wrote them.
func (h *History) Arguments(call string) string {
	for i := len(h.Path) - 1; i >= 0; i-- {
		for j := range h.Path[i].ToolCalls {
			if h.Path[i].ToolCalls[j].ID == call {
				return h.Path[i].ToolCalls[j].Function.Arguments
			}
		}
	}
	return ""
}

// WholeFrom returns the last message that belongs to what the message at a place
// began: its calls' results, and reasoning between them. It reports whether all its
// calls have a result by then.
func (h *History) WholeFrom(at int) (end int, whole bool) {
	open := map[string]bool{}
	for i := range at + 1 {
		for _, c := range h.Path[i].ToolCalls {
			open[c.ID] = true
		}
		delete(open, h.Path[i].ToolCallID)
	}
	for end = at; end+1 < len(h.Path); end++ {
		next := &h.Path[end+1]
		result := next.Role == string(holdfast.RoleTool)
		if !result && (len(open) == 0 || next.Role == string(holdfast.RoleUser) || next.Role == string(holdfast.RoleAssistant)) {
			break
		}
		delete(open, next.ToolCallID)
	}
	return end, len(open) == 0
}
