package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// The messages of a thread are a tree in the store, in which a run sees one path, from the
// first message to a leaf. This file reads that tree and follows the path, and says where a
// path may be cut without tearing apart what belongs together.

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
	if read, err := agui.DecodeMessage(data); err == nil {
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

// History reads the message tree and follows it from the leaf back to the first message.
func (rd Reader) History(ctx context.Context, key store.ThreadKey, leaf string) (*History, error) {
	u, err := rd.Undecoded(ctx, key, leaf)
	if err != nil {
		return nil, err
	}
	return u.Decode()
}

// Undecoded is a history that was read, and is known to be whole, but not what it says.
type Undecoded struct {
	Messages int // how many the path has

	key    store.ThreadKey
	stored []store.Message
	path   []int // the places of the path's messages in stored
}

// Undecoded does the first part of [Reader.History], which takes a third of the time.
func (rd Reader) Undecoded(ctx context.Context, key store.ThreadKey, leaf string) (*Undecoded, error) {
	stored, err := rd.Store.Messages(ctx, key)
	if err != nil {
		return nil, ReadError(key, err)
	}
	path, err := pathTo(key, stored, leaf)
	if err != nil {
		return nil, err
	}
	return &Undecoded{len(path), key, stored, path}, nil
}

// Decode does the second part.
func (u *Undecoded) Decode() (*History, error) {
	h, stored := NewHistory(), u.stored
	for _, place := range u.path {
		s := &stored[place]
		m, err := decodeMessage(s)
		if err != nil {
			return nil, ReadError(u.key, err)
		}
		h.Add(m, s.Data)
	}
	for i := range stored {
		if _, on := h.Index[stored[i].ID]; !on {
			m, err := decodeMessage(&stored[i])
			if err != nil {
				return nil, ReadError(u.key, err)
			}
			h.Elsewhere[stored[i].ID], h.Parents[stored[i].ID] = m.Role, stored[i].Parent
			if m.Role == string(holdfast.RoleUser) {
				h.Said[stored[i].ID] = stored[i].Data
			}
			h.noteCalls(&m)
		}
	}
	return h, nil
}

// decodeMessage decodes a stored message.
func decodeMessage(s *store.Message) (agui.Message, error) {
	m, err := agui.DecodeMessage(s.Data)
	if err != nil {
		err = fmt.Errorf("message %s: %w: %w", s.ID, ErrUnreadable, err)
	}
	return m, err
}

// pathTo returns the places of the messages from the first to the leaf.
func pathTo(key store.ThreadKey, stored []store.Message, leaf string) ([]int, error) {
	byID := make(map[string]int, len(stored))
	for i := range stored {
		byID[stored[i].ID] = i
	}
	var backwards []int
	for id := leaf; id != ""; {
		i, ok := byID[id]
		if !ok || len(backwards) > len(stored) {
			return nil, ReadError(key, fmt.Errorf("%w at %s", ErrHole, id))
		}
		backwards = append(backwards, i)
		id = stored[i].Parent
	}
	path := make([]int, len(backwards))
	for n, i := range backwards {
		path[len(path)-1-n] = i
	}
	return path, nil
}

// Result reads the answer that is the result of the thread's last run; nil if there is none.
func (rd Reader) Result(ctx context.Context, t *Thread) (json.RawMessage, error) {
	if t.State.Output == "" {
		return nil, nil
	}
	found, err := rd.Store.MessagesOf(ctx, t.Key, []string{t.State.Output})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	m, err := decodeMessage(&found[0])
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	return ResultOf(&m), nil
}
