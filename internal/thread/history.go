package thread

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// The messages of a thread are a tree in the store, in which a run sees one path, from the
// first message to a leaf. This file has what is known of both, and says where a path may be cut
// without tearing apart what belongs together.

// History is the messages of a thread: the path from the first one to the leaf, and the
// ids of those that are in the tree but not on the path.
type History struct {
	Path      []agui.Message    // from the first message to the leaf
	Raw       [][]byte          // the messages of Path as they are stored
	Index     map[string]int    // message id to its place in Path
	Elsewhere map[string]string // ids of messages on other branches, to their role
	Parents   map[string]string // ids of messages on other branches, to the ids of their parents
	Said      map[string][]byte // the user messages on other branches, as they are stored
	Queued    map[string]bool   // ids of user messages that wait for open calls
	Calls     map[string]bool   // tool call ids of the whole tree
	// Branched means that the thread has left its branch since the tree was read: of the messages
	// that it has left, not everything is known here.
	Branched bool

	domain []domain // see Domain
}

// NewHistory returns a history without messages.
func NewHistory() *History {
	return &History{
		Index:     map[string]int{},
		Elsewhere: map[string]string{},
		Parents:   map[string]string{},
		Said:      map[string][]byte{},
		Calls:     map[string]bool{},
	}
}

// Add appends a message, raw being its stored form, to the path.
func (h *History) Add(m agui.Message, raw []byte) {
	h.Index[m.ID] = len(h.Path)
	h.Path = append(h.Path, m)
	h.Raw = append(h.Raw, raw)
	h.noteCalls(&m)
}

// Stored returns a message as it will be read back from the store, and its stored form. A
// run works with the first, so that what it says to a model is the same, byte for byte,
// after a restart: writing repairs texts that are not UTF-8, for example.
func Stored(m agui.Message) (agui.Message, []byte) {
	data := m.AppendJSON(nil)
	if read, err := agui.DecodeStored(data); err == nil {
		return read, data
	}
	return m, data // what was just written can be read
}

// noteCalls remembers the ids of the message's calls.
func (h *History) noteCalls(m *agui.Message) {
	for i := range m.ToolCalls {
		h.Calls[m.ToolCalls[i].ID] = true
	}
}

// clone returns a history that can grow. It leaves h as it is, and shares its lists.
func (h *History) clone() *History {
	return &History{
		Path:      h.Path,
		Raw:       h.Raw,
		Index:     maps.Clone(h.Index),
		Elsewhere: maps.Clone(h.Elsewhere),
		Parents:   maps.Clone(h.Parents),
		Said:      maps.Clone(h.Said),
		Calls:     maps.Clone(h.Calls),
		domain:    h.domain,
	}
}

// longHistory is from how many messages on a history is long.
const longHistory = 200

// domain is a message of the path as hooks and models see it.
type domain struct {
	message holdfast.Message
	ok      bool // it can be read
}

// Domain returns the message at a place of the path as hooks and models see it; false if it
// cannot be read. A long history remembers it for the next run.
func (h *History) Domain(at int) (holdfast.Message, bool) {
	if at < len(h.domain) {
		return h.domain[at].message, h.domain[at].ok
	}
	m, err := h.Path[at].Domain()
	if at == len(h.domain) && len(h.Path) >= longHistory {
		if h.domain == nil {
			h.domain = make([]domain, 0, len(h.Path)+longHistory)
		}
		h.domain = append(h.domain, domain{m, err == nil})
	}
	return m, err == nil
}

// Last returns the place of the last message that models are shown: where the conversation
// stands. It returns -1 if there is none.
func (h *History) Last() int {
	last := len(h.Path) - 1
	for last >= 0 && Aside(&h.Path[last]) {
		last--
	}
	return last
}

// Arguments returns the arguments of a call on the path as the model wrote them; "" if
// it is not there.
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

// WholeFrom returns the place of the last message that belongs to the one at place at:
// the results of its calls, the reasoning between them, and what the model has made besides.
// It reports whether all calls have a result by then.
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
		if !result && !made(next) && (len(open) == 0 || next.Role == string(holdfast.RoleUser) ||
			next.Role == string(holdfast.RoleAssistant)) {
			break
		}
		delete(open, next.ToolCallID)
	}
	return end, len(open) == 0
}

// activityPrefix begins the types of what a model makes besides text, holdfast.image for
// example, and mediaKinds are these types' ends.
const activityPrefix = "holdfast."

var mediaKinds = []holdfast.PartType{holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo, holdfast.PartDocument}

// made reports whether a message is what a model has made besides the text of an answer.
func made(m *agui.Message) bool {
	kind, ours := strings.CutPrefix(m.ActivityType, activityPrefix)
	return ours && m.Role == string(holdfast.RoleActivity) && slices.Contains(mediaKinds, holdfast.PartType(kind))
}
