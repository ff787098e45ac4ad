// Package tanstack shows histories as the client of TanStack AI keeps them: messages that are lists of
// parts, in which the results of calls are beside the calls. AG-UI has a message for each of these.
package tanstack

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// message is one of the client's messages.
type message struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Parts    []any           `json:"parts"`
	Name     string          `json:"name,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// The parts of a message. Others, like images, are the same in AG-UI and stay as they are.
type (
	text struct {
		Type    string `json:"type"`
		Content string `json:"content"`
		StepID  string `json:"stepId,omitempty"` // of a thought
	}
	call struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		State     string          `json:"state"`
		Approval  *approval       `json:"approval,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		Output    json.RawMessage `json:"output,omitempty"`
	}
	// approval is what a person is asked about a call.
	approval struct {
		ID    string `json:"id"`
		Needs bool   `json:"needsApproval"`
	}
	result struct {
		Type       string          `json:"type"`
		ID         string          `json:"id"`
		ToolCallID string          `json:"toolCallId"`
		Content    json.RawMessage `json:"content"`
		State      string          `json:"state"`
		Metadata   json.RawMessage `json:"metadata,omitempty"`
	}
)

// The states of calls and results. A call whose arguments are known and that has no result yet is asked.
const (
	stateAsked    = "input-complete"
	stateApproval = "approval-requested"
	stateComplete = "complete"
)

// Messages returns the messages of a history, which are AG-UI's, as the client keeps them. They are made
// as they are used; after an error there is no more.
func Messages(history iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return messages(history, nil)
}

// messages returns the messages of a history, of which a person is asked to approve some calls: asked has the ids
// of these questions, by call.
func messages(history iter.Seq2[[]byte, error], asked map[string]string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		w := writer{yield: yield, asked: asked}
		for data, err := range history {
			var m agui.Message
			if err == nil {
				m, err = agui.DecodeMessage(data)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !w.add(&m) {
				return
			}
		}
		w.flush()
	}
}

// writer puts together what belongs to one message.
type writer struct {
	yield func([]byte, error) bool
	asked map[string]string
	// open is an answer that the next messages may belong to.
	open *message
	// thought says that open has only what was thought before the answer itself.
	thought bool
}

// flush yields the open message. It reports false if nobody wants more.
func (w *writer) flush() bool {
	m := w.open
	if w.open, w.thought = nil, false; m == nil {
		return true
	}
	data, err := json.Marshal(m)
	return w.yield(data, err) && err == nil
}

// add takes one message of the history. It reports false if nobody wants more.
func (w *writer) add(m *agui.Message) bool {
	switch holdfast.Role(m.Role) {
	case holdfast.RoleTool:
		return w.result(m)
	case holdfast.RoleReasoning:
		if !w.thought && !w.flush() {
			return false
		}
		if w.open == nil {
			w.open, w.thought = &message{ID: m.ID, Role: string(holdfast.RoleAssistant)}, true
		}
		w.open.Parts = append(w.open.Parts, text{Type: "thinking", Content: plain(m.Content), StepID: m.ID})
		return true
	case holdfast.RoleAssistant:
		return w.answer(m)
	case holdfast.RoleUser:
		return w.flush() && w.whole(m, m.Role, parts(m.Content))
	case holdfast.RoleActivity:
		return true // it is no part of what is said
	}
	return w.flush() && w.whole(m, string(holdfast.RoleSystem), parts(m.Content))
}

// whole yields a message to which nothing is added.
func (w *writer) whole(m *agui.Message, role string, parts []any) bool {
	w.open = &message{
		ID:       m.ID,
		Role:     role,
		Parts:    parts,
		Name:     m.Name,
		Metadata: m.Metadata,
	}
	return w.flush()
}

// answer opens a message of the assistant, with what was thought before.
func (w *writer) answer(m *agui.Message) bool {
	before := []any{}
	if w.thought {
		before, w.open, w.thought = w.open.Parts, nil, false
	}
	if !w.flush() {
		return false
	}
	w.open = &message{
		ID:       m.ID,
		Role:     m.Role,
		Parts:    append(before, parts(m.Content)...),
		Name:     m.Name,
		Metadata: m.Metadata,
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		part := &call{
			Type:      "tool-call",
			ID:        c.ID,
			Name:      c.Function.Name,
			Arguments: c.Function.Arguments,
			State:     stateAsked,
		}
		if json.Valid([]byte(c.Function.Arguments)) {
			part.Input = json.RawMessage(c.Function.Arguments)
		}
		if question := w.asked[c.ID]; question != "" {
			part.State, part.Approval = stateApproval, &approval{question, true}
		}
		w.open.Parts = append(w.open.Parts, part)
	}
	return true
}

// result puts the result of a call beside the call.
func (w *writer) result(m *agui.Message) bool {
	content := m.Content
	if list, is := listed(content); is {
		content, _ = json.Marshal(list) // it was decoded from JSON
	}
	r := result{
		Type:       "tool-result",
		ID:         m.ID,
		ToolCallID: m.ToolCallID,
		Content:    content,
		State:      stateComplete,
		Metadata:   m.Metadata,
	}
	if w.open == nil || w.thought {
		return w.flush() && w.whole(&agui.Message{ID: m.ID}, string(holdfast.RoleAssistant), []any{r})
	}
	for _, p := range w.open.Parts {
		if c, is := p.(*call); is && c.ID == m.ToolCallID {
			c.State, c.Output = stateComplete, content
			if said := []byte(plain(content)); json.Valid(said) {
				c.Output = said
			}
		}
	}
	w.open.Parts = append(w.open.Parts, r)
	return true
}

// plain returns content that is a text.
func plain(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) != nil {
		return ""
	}
	return s
}

// parts returns the parts of content, never nil.
func parts(content json.RawMessage) []any {
	if list, is := listed(content); is {
		return list
	}
	if s := plain(content); s != "" {
		return []any{text{Type: "text", Content: s}}
	}
	return []any{}
}

// listed returns the parts of content that is a list of them.
func listed(content json.RawMessage) ([]any, bool) {
	var list []json.RawMessage
	if !bytes.HasPrefix(content, []byte("[")) || json.Unmarshal(content, &list) != nil {
		return nil, false
	}
	out := make([]any, len(list))
	for i, data := range list {
		var p struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if out[i] = data; json.Unmarshal(data, &p) == nil && p.Type == "text" {
			out[i] = text{Type: "text", Content: p.Text}
		}
	}
	return out, true
}
