package looptest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Reduce returns what a stock client makes of a stream: the messages on its screen. A
// snapshot without reasoning takes none away.
func Reduce(events []agui.Event) []string {
	s := &screen{text: map[string]string{}}
	for _, e := range events {
		s.take(e)
	}
	out := make([]string, len(s.order))
	for i, id := range s.order {
		out[i] = s.text[id]
	}
	return out
}

// screen has the messages and calls that a client shows, by id.
type screen struct {
	order []string
	text  map[string]string
}

func (s *screen) take(ev agui.Event) {
	switch e := ev.(type) {
	case agui.MessagesSnapshot:
		s.restart(e.Messages)
	case agui.TextMessageStart:
		s.begin(e.MessageID, "assistant:")
	case agui.TextMessageContent:
		s.add(e.MessageID, e.Delta)
	case agui.ReasoningMessageStart:
		s.begin(e.MessageID, "reasoning:")
	case agui.ReasoningMessageContent:
		s.add(e.MessageID, e.Delta)
	case agui.ToolCallStart:
		s.begin(e.ParentMessageID, "assistant:")
		s.begin("call "+e.ToolCallID, e.ToolCallName)
	case agui.ToolCallArgs:
		s.add("call "+e.ToolCallID, e.Delta)
	case agui.ToolCallResult:
		var result string
		_ = json.Unmarshal(e.Content, &result)
		s.add(e.MessageID, "tool:"+result)
	}
}

// begin shows something that is new, unless it is there already.
func (s *screen) begin(id, text string) {
	if _, known := s.text[id]; !known {
		s.add(id, text)
	}
}

func (s *screen) add(id, text string) {
	if _, known := s.text[id]; !known {
		s.order = append(s.order, id)
	}
	s.text[id] += text
}

// restart shows the messages of a snapshot instead of those before, apart from their
// reasoning if the snapshot has none.
func (s *screen) restart(snapshot []agui.Message) {
	before := *s
	*s = screen{text: map[string]string{}}
	if !slices.ContainsFunc(snapshot, func(m agui.Message) bool { return m.Role == string(holdfast.RoleReasoning) }) {
		for _, id := range before.order {
			if strings.HasPrefix(before.text[id], "reasoning:") {
				s.add(id, before.text[id])
			}
		}
	}
	for _, m := range snapshot {
		d, _ := m.Domain()
		s.add(m.ID, string(d.Role)+":"+d.PlainText())
		for _, c := range d.Calls {
			s.add("call "+c.ID, c.Name+string(c.Arguments))
		}
	}
}
