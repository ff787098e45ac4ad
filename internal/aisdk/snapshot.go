package aisdk

// Snapshots of a thread's messages in a stream: one before the answer shows a client that comes
// late what there is of it, and one in the middle says that a part of it is taken back.

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// wants reports whether a snapshot is to be read; record is the id of its record, which that of
// a prelude does not have.
func (e *encoder) wants(record string) bool {
	switch {
	case e.begun:
		return true
	case e.started || e.replays || e.Rest:
		return false
	case e.Post == nil:
		return true
	}
	return e.Post.Continues == "" && (record == "" || e.Post.Rewrites)
}

// snapshot is what is needed of a MESSAGES_SNAPSHOT: the messages after the last of a person or,
// in the middle of an answer, which messages there are, and those of the current step.
type snapshot struct {
	last     string // the id of the person's last message; empty if there is none
	answer   []agui.Message
	has      map[string]bool
	messages []string // of the current step; nil before there is one
	calls    []string
}

func (e *encoder) newSnapshot() *snapshot {
	if !e.begun {
		return &snapshot{}
	}
	return &snapshot{has: map[string]bool{}, messages: e.shown, calls: e.step.calls}
}

// take takes a piece: a message, or the punctuation around it; see [agui.MessagesSnapshotPieces].
func (s *snapshot) take(piece []byte) error {
	if len(piece) == 0 || piece[0] != '{' {
		return nil
	}
	m, err := agui.DecodeMessage(piece)
	if err != nil {
		return err
	}
	s.add(&m)
	return nil
}

func (s *snapshot) add(m *agui.Message) {
	switch {
	case s.has != nil:
		s.has[m.ID] = true
		if slices.Contains(s.messages, m.ID) || m.ToolCallID != "" && slices.Contains(s.calls, m.ToolCallID) {
			s.answer = append(s.answer, *m)
		}
	case m.Role == string(holdfast.RoleUser):
		s.last, s.answer = m.ID, nil
	default:
		s.answer = append(s.answer, *m)
	}
}

// whole reads a snapshot that comes in one piece.
func (e *encoder) whole(f *agui.Frame) error {
	if !e.wants(f.ID) {
		return nil
	}
	var said struct {
		Messages []agui.Message `json:"messages"`
	}
	if err := json.Unmarshal(f.Data, &said); err != nil {
		return err
	}
	s := e.newSnapshot()
	for i := range said.Messages {
		s.add(&said.Messages[i])
	}
	e.snapshot(s)
	return nil
}

// snapshot shows what a snapshot shows of the answer, or takes back what it does not have.
func (e *encoder) snapshot(s *snapshot) {
	if s.has != nil {
		e.takeBack(s)
		return
	}
	e.replays = len(s.answer) > 0
	if s.last != "" && (e.id == "" || e.Post != nil && e.Post.Rewrites) {
		e.id = answerID(s.last)
	}
	for i := range s.answer {
		e.replay(&s.answer[i])
	}
}

// replay shows a message of the answer.
func (e *encoder) replay(m *agui.Message) {
	if e.id == "" {
		e.id = answerID(m.ID)
	}
	switch holdfast.Role(m.Role) {
	case holdfast.RoleReasoning:
		e.restate(m, true)
	case holdfast.RoleAssistant:
		if len(m.Content) > 0 {
			e.restate(m, false)
		}
		for i := range m.ToolCalls {
			c := &m.ToolCalls[i]
			e.called(agui.ToolCallStart{ToolCallID: c.ID, ToolCallName: c.Function.Name, ParentMessageID: m.ID})
			e.args(quoted(c.ID), quoted(c.Function.Arguments))
			e.shownCalls[c.ID].again = true
			e.replayed = append(e.replayed, c.ID)
		}
	case holdfast.RoleTool:
		if c := e.shownCalls[m.ToolCallID]; c != nil {
			c.again = false
		}
		mark := thread.MarkOf(m)
		mark.Failed = mark.Failed || m.Error != ""
		e.result(m.ToolCallID, m.Content, mark)
	case holdfast.RoleActivity:
		e.activity(m.ID, m.ActivityType, m.Content)
	}
}

// restate shows a text, which is not ended: it may go on.
func (e *encoder) restate(m *agui.Message, reasoning bool) {
	if len(m.Content) <= len(`""`) || m.Content[0] != '"' {
		return
	}
	it := e.opened(m.ID, reasoning)
	e.said(it.id, m.Content, reasoning)
	it.again = true
}

// caughtUp ends what a snapshot has shown and nothing has opened again.
func (e *encoder) caughtUp() {
	if !e.replays {
		return
	}
	e.replays = false
	for _, id := range e.replayed {
		if c := e.shownCalls[id]; c != nil && c.again {
			e.made(id)
		}
	}
	e.replayed = nil
	open := e.open
	e.open = nil
	for _, it := range open {
		if it.again {
			e.close(it)
		} else {
			e.open = append(e.open, it)
		}
	}
}

// takeBack removes what the current step shows and the thread does not have any more. Older
// clients cannot do that: they keep it until their page is loaded again.
func (e *encoder) takeBack(s *snapshot) {
	if !slices.ContainsFunc(s.messages, func(id string) bool { return !s.has[id] }) {
		return
	}
	if e.Version < V7 {
		e.endStep()
	} else {
		e.out.plain("reset-step")
		e.open, e.goesOn, e.state, e.step = nil, nil, nil, step{begun: true}
	}
	for _, id := range s.calls {
		delete(e.shownCalls, id)
	}
	if e.Version < V7 {
		return
	}
	for _, id := range s.messages {
		delete(e.files, id)
	}
	for i := range s.answer {
		e.replay(&s.answer[i])
	}
	e.replays = true
	e.caughtUp()
}
