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
	case e.begun || e.replays:
		return e.begun
	case e.started || e.Rest:
		return false
	case e.Post == nil:
		return true
	}
	return e.Post.Continues == "" && (record == "" || e.Post.Rewrites)
}

// snapshot reads a MESSAGES_SNAPSHOT.
func (e *encoder) snapshot(data []byte) {
	var said struct {
		Messages []agui.Message `json:"messages"`
	}
	if json.Unmarshal(data, &said) != nil {
		return // it is our own
	}
	if e.begun {
		e.takeBack(said.Messages)
		return
	}
	e.replays = true
	last := -1
	for i := range said.Messages {
		if said.Messages[i].Role == string(holdfast.RoleUser) {
			last = i
		}
	}
	if last >= 0 && (e.id == "" || e.Post != nil && e.Post.Rewrites) {
		e.id = answerID(said.Messages[last].ID)
	}
	for i := range said.Messages[last+1:] {
		e.replay(&said.Messages[last+1+i])
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
func (e *encoder) takeBack(messages []agui.Message) {
	has := map[string]bool{}
	for i := range messages {
		has[messages[i].ID] = true
	}
	shown, calls := e.shown, e.step.calls
	if !slices.ContainsFunc(shown, func(id string) bool { return !has[id] }) {
		return
	}
	if e.Version < V7 {
		e.endStep()
		for _, id := range calls {
			delete(e.shownCalls, id)
		}
		return
	}
	e.out.plain("reset-step")
	e.open, e.state, e.step = nil, nil, step{begun: true}
	for _, id := range calls {
		delete(e.shownCalls, id)
	}
	for _, id := range shown {
		delete(e.files, id)
	}
	for i := range messages {
		m := &messages[i]
		kept := slices.Contains(shown, m.ID) ||
			m.Role == string(holdfast.RoleTool) && slices.Contains(calls, m.ToolCallID) &&
				e.shownCalls[m.ToolCallID] != nil
		if kept {
			e.replay(m)
		}
	}
	e.replays = true
	e.caughtUp()
}
