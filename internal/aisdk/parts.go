package aisdk

// UI messages and their parts, and the messages of a thread that they are.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// message is a UIMessage of a client.
type message struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Metadata json.RawMessage `json:"metadata"`
	Parts    []part          `json:"parts"`
}

// part is a part of it.
type part struct {
	Type              string          `json:"type"`
	Text              string          `json:"text"`
	MediaType         string          `json:"mediaType"`
	URL               string          `json:"url"`
	Filename          string          `json:"filename"`
	ProviderReference json.RawMessage `json:"providerReference"`
	ToolCallID        string          `json:"toolCallId"`
	ToolName          string          `json:"toolName"`
	State             string          `json:"state"`
	Input             json.RawMessage `json:"input"`
	Output            json.RawMessage `json:"output"`
	ErrorText         string          `json:"errorText"`
	Approval          json.RawMessage `json:"approval"`
}

// The types of parts, and the states of a tool's, that mean something here.
const (
	partText      = "text"
	partReasoning = "reasoning"
	partFile      = "file"
	partStep      = "step-start"
	partDynamic   = "dynamic-tool"
	partTool      = "tool-" // and the tool's name

	stateStreaming = "input-streaming"
	stateInput     = "input-available"
	stateAsked     = "approval-requested"
	stateAnswered  = "approval-responded"
	stateOutput    = "output-available"
	stateError     = "output-error"
	stateDenied    = "output-denied"
)

// tool returns the name of the tool that the part is a call of; empty if it is no call.
func (p *part) tool() string {
	if p.Type == partDynamic {
		return p.ToolName
	}
	name, _ := strings.CutPrefix(p.Type, partTool)
	if name == p.Type {
		return ""
	}
	return name
}

// calls returns the ids of the calls that the message shows.
func (m *message) calls() map[string]bool {
	calls := map[string]bool{}
	for i := range m.Parts {
		if m.Parts[i].tool() != "" {
			calls[m.Parts[i].ToolCallID] = true
		}
	}
	return calls
}

// approval returns the answer to the question about the call, if the person has just given it.
func (p *part) approval() (agui.ResumeEntry, bool) {
	var said struct {
		ID       string `json:"id"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason"`
	}
	if p.tool() == "" || p.State != stateAnswered || json.Unmarshal(p.Approval, &said) != nil || said.ID == "" {
		return agui.ResumeEntry{}, false
	}
	payload := struct {
		Approved bool   `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}{said.Approved, said.Reason}
	return agui.ResumeEntry{InterruptID: said.ID, Status: agui.ResumeResolved, Payload: encoded(payload)}, true
}

// messages returns the messages of a thread that the UI message is.
func (m *message) messages(field string) ([]agui.Message, error) {
	switch holdfast.Role(m.Role) {
	case holdfast.RoleUser:
		out, err := m.said(field)
		return []agui.Message{out}, err
	case holdfast.RoleSystem:
		out := agui.Message{ID: m.ID, Role: m.Role}
		var all []string
		for i := range m.Parts {
			if m.Parts[i].Type == partText {
				all = append(all, m.Parts[i].Text)
			}
		}
		out.Content = quoted(strings.Join(all, "\n"))
		return []agui.Message{out}, nil
	case holdfast.RoleAssistant:
		a := answer{ui: m}
		for i := range m.Parts {
			if err := a.take(field, &m.Parts[i]); err != nil {
				return nil, err
			}
		}
		a.flush()
		return a.out, nil
	}
	return nil, invalid(field+".role", "A message has an unknown role.").
		WithHint("Use user, assistant or system.")
}

// said is a person's message. One text is content by itself; anything else is a list of parts.
func (m *message) said(field string) (agui.Message, error) {
	d := holdfast.Message{ID: m.ID, Role: holdfast.RoleUser}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case partText:
			d.Parts = append(d.Parts, holdfast.Part{Type: holdfast.PartText, Text: p.Text})
		case partFile:
			file, err := p.file()
			if err != nil {
				return agui.Message{}, invalid(fmt.Sprintf("%s.parts[%d].url", field, i), "A file cannot be read.").
					WithHint("Send a data: URL, or an http: or https: URL.").Wrap(err)
			}
			d.Parts = append(d.Parts, file)
		}
	}
	if len(d.Parts) == 0 || len(d.Parts) == 1 && d.Parts[0].Type == holdfast.PartText {
		for _, p := range d.Parts {
			d.Text = p.Text
		}
		d.Parts = nil
	}
	out := agui.FromDomain(d)
	if metadata := bytes.TrimSpace(m.Metadata); len(metadata) > 0 && metadata[0] == '{' {
		out.Metadata = metadata
	}
	return out, nil
}

// mediaParts are the kinds of media by the first half of their type; all others are documents.
var mediaParts = map[string]holdfast.PartType{
	"image": holdfast.PartImage,
	"audio": holdfast.PartAudio,
	"video": holdfast.PartVideo,
}

// file returns a file as a part of a message.
func (p *part) file() (holdfast.Part, error) {
	kind, _, _ := strings.Cut(p.MediaType, "/")
	out := holdfast.Part{Type: holdfast.PartDocument, Source: &holdfast.Source{MIMEType: p.MediaType}}
	if of, known := mediaParts[kind]; known {
		out.Type = of
	}
	if p.Filename != "" {
		out.Metadata = encoded(map[string]string{"filename": p.Filename})
	}
	var references map[string]string
	if json.Unmarshal(p.ProviderReference, &references) == nil && len(references) > 0 {
		provider := slices.Sorted(maps.Keys(references))[0]
		out.Source.Type, out.Source.Provider, out.Source.Value = holdfast.SourceFile, provider, references[provider]
		return out, nil
	}
	data, is := strings.CutPrefix(p.URL, "data:")
	if !is {
		if _, err := url.ParseRequestURI(p.URL); err != nil {
			return out, err
		}
		out.Source.Type, out.Source.Value = holdfast.SourceURL, p.URL
		return out, nil
	}
	head, content, found := strings.Cut(data, ",")
	if !found {
		return out, fmt.Errorf("the data: URL has no comma")
	}
	mime, base64ed := strings.CutSuffix(head, ";base64")
	if out.Source.MIMEType == "" {
		out.Source.MIMEType = mime
	}
	if !base64ed {
		plain, err := url.PathUnescape(content)
		if err != nil {
			return out, err
		}
		content = base64.StdEncoding.EncodeToString([]byte(plain))
	}
	out.Source.Type, out.Source.Value = holdfast.SourceData, content
	return out, nil
}

// answer makes messages of the parts of an assistant's message. A model's message has one text,
// then calls; their results follow it.
type answer struct {
	ui      *message
	now     agui.Message
	text    []string
	results []agui.Message
	out     []agui.Message
}

func (a *answer) take(field string, p *part) error {
	switch {
	case p.Type == partStep:
		a.flush()
	case p.Type == partText:
		if len(a.now.ToolCalls) > 0 {
			a.flush()
		}
		a.text = append(a.text, p.Text)
	case p.Type == partReasoning && p.Text != "":
		a.out = append(a.out, agui.Message{ID: a.id(), Role: string(holdfast.RoleReasoning), Content: quoted(p.Text)})
	case p.tool() != "" && p.State != stateStreaming:
		return a.call(field, p)
	}
	return nil
}

// id returns an id for the next message. The first one has that of the UI message.
func (a *answer) id() string {
	if len(a.out) == 0 {
		return a.ui.ID
	}
	return fmt.Sprintf("%s-%d", a.ui.ID, len(a.out))
}

func (a *answer) call(field string, p *part) error {
	if p.ToolCallID == "" {
		return invalid(field+".parts", "The part of a tool has no toolCallId.")
	}
	input := string(p.Input)
	if input == "" {
		input = "{}"
	}
	a.now.ToolCalls = append(a.now.ToolCalls, agui.ToolCall{
		ID:       p.ToolCallID,
		Type:     "function",
		Function: agui.Function{Name: p.tool(), Arguments: input},
	})
	result := agui.Message{
		ID:         "result-" + p.ToolCallID,
		Role:       string(holdfast.RoleTool),
		ToolCallID: p.ToolCallID,
	}
	switch p.State {
	case stateOutput:
		result.Content = resultOf(p.Output)
	case stateError:
		result.Content, result.Error = quoted(p.ErrorText), p.ErrorText
	case stateDenied:
		result.Content = quoted("The person did not allow this call.")
	default:
		return nil
	}
	a.results = append(a.results, result)
	return nil
}

// flush ends the message that is being made.
func (a *answer) flush() {
	if len(a.text) > 0 || len(a.now.ToolCalls) > 0 {
		m := a.now
		m.ID, m.Role = a.id(), string(holdfast.RoleAssistant)
		if len(a.text) > 0 {
			m.Content = quoted(strings.Join(a.text, ""))
		}
		a.out = append(append(a.out, m), a.results...)
	}
	a.now, a.text, a.results = agui.Message{}, nil, nil
}

// resultOf returns an output as the content of a result: text as it is, anything else as JSON.
func resultOf(output json.RawMessage) json.RawMessage {
	output = bytes.TrimSpace(output)
	switch {
	case len(output) == 0:
		return quoted("null")
	case output[0] == '"':
		return output
	}
	return quoted(string(output))
}

// outputOf is the reverse: text that is a JSON object or a list is what it says.
func outputOf(content json.RawMessage) json.RawMessage {
	var said string
	if len(content) == 0 {
		return json.RawMessage(`""`)
	}
	if json.Unmarshal(content, &said) != nil {
		return content // a list of parts
	}
	if trimmed := strings.TrimSpace(said); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') &&
		json.Valid([]byte(trimmed)) {
		var line bytes.Buffer
		if json.Compact(&line, []byte(trimmed)) == nil {
			return line.Bytes()
		}
	}
	return content
}
