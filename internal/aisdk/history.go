package aisdk

// The history of a thread as UI messages, with which a page begins.

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// History returns the messages of a thread as UI messages: what a person has said, and the answer
// to it, which may be several messages and runs of the thread. questions are the open ones.
func History(
	messages iter.Seq2[json.RawMessage, error], questions []threads.Interrupt,
) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		h := history{questions: questions}
		for raw, err := range messages {
			var m agui.Message
			if err == nil {
				m, err = agui.DecodeMessage(raw)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, ui := range h.take(&m) {
				if !yield(ui, nil) {
					return
				}
			}
		}
		h.ask()
		if ui := h.flush(); ui != nil {
			yield(ui, nil)
		}
	}
}

// UserMessage returns the message of a history that a client wants another answer to: the one
// that the UI message answer is the answer to or, if it names none, the last of a person's; false
// if there is none.
func UserMessage(messages iter.Seq2[json.RawMessage, error], answer string) (found agui.Message, ok bool, err error) {
	for raw, err := range messages {
		if err != nil {
			return found, false, err
		}
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			return found, false, err
		}
		if m.Role == string(holdfast.RoleUser) && (answer == "" || answer == answerID(m.ID) || answer == m.ID) {
			found, ok = m, true
		}
	}
	return found, ok, nil
}

// uiMessage is a UIMessage as it is written.
type uiMessage struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Parts    []any           `json:"parts"`
}

type uiText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	State string `json:"state,omitempty"`
}

type uiFile struct {
	Type              string            `json:"type"`
	MediaType         string            `json:"mediaType"`
	Filename          string            `json:"filename,omitempty"`
	URL               string            `json:"url"`
	ProviderReference map[string]string `json:"providerReference,omitempty"`
}

type uiTool struct {
	Type       string          `json:"type"`
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *uiApproval     `json:"approval,omitempty"`
}

type uiApproval struct {
	ID            string `json:"id"`
	Approved      *bool  `json:"approved,omitempty"`
	RequestReason string `json:"requestReason,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// history is the answer that is being put together.
type history struct {
	questions []threads.Interrupt
	user      string // the id of what it answers
	answer    *uiMessage
	step
	tools map[string]*uiTool
}

// take adds a message, and returns the UI messages that are complete with it.
func (h *history) take(m *agui.Message) (whole []json.RawMessage) {
	switch holdfast.Role(m.Role) {
	case holdfast.RoleUser:
		if ui := h.flush(); ui != nil {
			whole = append(whole, ui)
		}
		h.user = m.ID
		return append(whole, encoded(userMessage(m)))
	case holdfast.RoleReasoning:
		h.text(m, true)
	case holdfast.RoleAssistant:
		h.text(m, false)
		for i := range m.ToolCalls {
			h.call(m, &m.ToolCalls[i])
		}
	case holdfast.RoleTool:
		h.result(m)
	case holdfast.RoleActivity:
		for _, part := range beside(m.ID, m.ActivityType, m.Content) {
			h.add(m, part)
		}
	}
	return nil
}

// flush returns the answer as it is; nil if there is none.
func (h *history) flush() json.RawMessage {
	a := h.answer
	h.answer, h.step, h.tools = nil, step{}, nil
	if a == nil {
		return nil
	}
	return encoded(a)
}

// add adds a part to the answer.
func (h *history) add(m *agui.Message, part any) {
	if h.answer == nil {
		id := h.user
		if id == "" {
			id = m.ID
		}
		h.answer, h.tools = &uiMessage{ID: answerID(id), Role: string(holdfast.RoleAssistant)}, map[string]*uiTool{}
	}
	h.answer.Parts = append(h.answer.Parts, part)
}

// within begins a step where a stream has begun one.
func (h *history) within(m *agui.Message, reasoning bool) {
	if h.begun && (h.sealed || !reasoning && h.message != "" && h.message != m.ID) {
		h.step = step{}
	}
	if !h.begun {
		h.begun = true
		h.add(m, uiMark{partStep})
	}
	if !reasoning {
		h.message = m.ID
	}
}

// uiMark is a part that has only a type.
type uiMark struct {
	Type string `json:"type"`
}

func (h *history) text(m *agui.Message, reasoning bool) {
	var said string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &said) != nil || said == "" {
		return
	}
	h.within(m, reasoning)
	h.add(m, uiText{kindOf(reasoning), said, "done"})
	if strings.Contains(string(m.Metadata), `"partial"`) {
		h.answer.Metadata = m.Metadata
	}
}

func (h *history) call(m *agui.Message, c *agui.ToolCall) {
	h.within(m, false)
	input := json.RawMessage(strings.TrimSpace(c.Function.Arguments))
	switch {
	case len(input) == 0:
		input = json.RawMessage("{}")
	case !json.Valid(input):
		input = quoted(c.Function.Arguments)
	}
	t := &uiTool{Type: partTool + c.Function.Name, ToolCallID: c.ID, State: stateInput, Input: input}
	h.add(m, t)
	h.tools[c.ID] = t
}

func (h *history) result(m *agui.Message) {
	h.sealed = h.begun
	t := h.tools[m.ToolCallID]
	if t == nil {
		return
	}
	mark := thread.MarkOf(m)
	switch text, failed := failureOf(m.Content, m.Error, mark); {
	case !failed:
		t.State, t.Output = stateOutput, outputOf(m.Content)
	case denied(text, mark):
		no := false
		t.State, t.Approval = stateDenied, &uiApproval{ID: m.ToolCallID, Approved: &no, Reason: text}
	default:
		t.State, t.ErrorText = stateError, text
	}
}

// ask puts the open questions into the answer.
func (h *history) ask() {
	for i := range h.questions {
		q := &h.questions[i]
		t := h.tools[q.ToolCallID]
		if t != nil && agui.AsksApproval(q.Reason, q.ToolCallID, q.ResponseSchema) {
			t.State, t.Approval = stateAsked, &uiApproval{ID: q.ID, RequestReason: q.Message}
			continue
		}
		h.add(&agui.Message{ID: q.ID}, besides{Type: "data-question", ID: q.ID, Data: encoded(q)})
	}
}

// userMessage returns what a person has said.
func userMessage(m *agui.Message) uiMessage {
	ui := uiMessage{ID: m.ID, Role: m.Role, Metadata: m.Metadata, Parts: []any{}}
	d, err := m.Domain()
	if err != nil {
		return ui // it was stored, so it can be read
	}
	if d.Text != "" {
		ui.Parts = append(ui.Parts, uiText{Type: partText, Text: d.Text})
	}
	for i := range d.Parts {
		p := &d.Parts[i]
		switch {
		case p.Type == holdfast.PartText:
			ui.Parts = append(ui.Parts, uiText{Type: partText, Text: p.Text})
		case p.Source != nil:
			ui.Parts = append(ui.Parts, fileOf(p))
		}
	}
	return ui
}

// fileOf returns a file of a person's message.
func fileOf(p *holdfast.Part) uiFile {
	file := uiFile{Type: partFile, MediaType: p.Source.MIMEType, URL: p.Source.Value}
	var said struct {
		Filename string `json:"filename"`
	}
	if json.Unmarshal(p.Metadata, &said) == nil {
		file.Filename = said.Filename
	}
	switch p.Source.Type {
	case holdfast.SourceData:
		file.URL = "data:" + p.Source.MIMEType + ";base64," + p.Source.Value
	case holdfast.SourceFile:
		file.URL, file.ProviderReference = "", map[string]string{p.Source.Provider: p.Source.Value}
	}
	return file
}
