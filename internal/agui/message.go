package agui

// Messages on the wire: how they are decoded and encoded, what each role may have,
// and how they turn into the root package's messages and back.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// Message is a message on the wire. Content is a JSON string, a list of parts or, for
// an activity, an object; it is decoded only when it is needed.
type Message struct {
	ID             string          `json:"id"`
	Role           string          `json:"role"`
	Content        json.RawMessage `json:"content"`
	Name           string          `json:"name"`
	ToolCalls      []ToolCall      `json:"toolCalls"`
	ToolCallID     string          `json:"toolCallId"`
	Error          string          `json:"error"`
	EncryptedValue string          `json:"encryptedValue"`
	ActivityType   string          `json:"activityType"`
	Metadata       json.RawMessage `json:"metadata"`
	SubagentRunID  string          `json:"subagentRunId"`
}

// ToolCall is a call that an assistant message makes.
type ToolCall struct {
	ID             string          `json:"id"`
	Type           string          `json:"type"`
	Function       Function        `json:"function"`
	EncryptedValue string          `json:"encryptedValue"`
	Metadata       json.RawMessage `json:"metadata"`
}

// Function is the function of a call. Arguments is unchecked JSON text.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// DecodeMessage reads one message.
func DecodeMessage(data []byte) (Message, error) { return DecodeStored(bytes.Clone(data)) }

// DecodeStored reads one message that shares memory with data, which must not change any more.
// Messages as [Message.AppendJSON] writes them are read without encoding/json.
func DecodeStored(data []byte) (Message, error) {
	if m, ok := readPlain(data); ok {
		m.normalize()
		return m, nil
	}
	return decodeMessage(data)
}

// decodeMessage reads a message, however it is written.
func decodeMessage(data []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("decode a message: %w", err)
	}
	m.normalize()
	return m, nil
}

// normalize turns the nulls that lenient clients send into absence.
func (m *Message) normalize() {
	m.Content = absentIfNull(m.Content)
	m.Metadata = absentIfNull(m.Metadata)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Metadata = absentIfNull(m.ToolCalls[i].Metadata)
	}
}

func absentIfNull(v json.RawMessage) json.RawMessage {
	if len(v) == 4 && string(v) == "null" {
		return nil
	}
	return v
}

// AppendJSON appends the message as strict AG-UI 1.0 JSON.
func (m *Message) AppendJSON(dst []byte) []byte {
	o := begin(dst)
	o.str("id", m.ID)
	o.str("role", m.Role)
	m.appendByRole(&o)
	o.obj("metadata", m.Metadata)
	o.opt("subagentRunId", m.SubagentRunID)
	return o.end()
}

// appendByRole writes only the members that the role has: the official client warns
// about every other one.
func (m *Message) appendByRole(o *object) {
	switch role := holdfast.Role(m.Role); role {
	case holdfast.RoleActivity:
		o.kind("content", m.Content, forms["object"])
		o.str("activityType", m.ActivityType)
		return
	case holdfast.RoleAssistant:
		if len(m.Content) > 0 && m.Content[0] == '"' {
			o.raw("content", m.Content)
		}
		if len(m.ToolCalls) > 0 {
			o.list("toolCalls", len(m.ToolCalls), func(i int, b []byte) []byte { return m.ToolCalls[i].appendJSON(b) })
		}
		o.opt("name", m.Name)
	case holdfast.RoleTool:
		o.kind("content", m.Content, forms["text or list"])
		o.str("toolCallId", m.ToolCallID)
		o.opt("error", m.Error)
	case holdfast.RoleUser:
		o.kind("content", m.Content, forms["text or list"])
		o.opt("name", m.Name)
	default:
		o.kind("content", m.Content, forms["text"])
		if role != holdfast.RoleReasoning {
			o.opt("name", m.Name)
		}
	}
	o.opt("encryptedValue", m.EncryptedValue)
}

func (c *ToolCall) appendJSON(dst []byte) []byte {
	o := begin(dst)
	o.str("id", c.ID)
	o.str("type", "function")
	o.key("function")
	f := begin(o.b)
	f.str("name", c.Function.Name)
	f.str("arguments", c.Function.Arguments)
	o.b = f.end()
	o.opt("encryptedValue", c.EncryptedValue)
	o.obj("metadata", c.Metadata)
	return o.end()
}

// part is a content part on the wire, including the retired binary form.
type part struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Text     *string         `json:"text"`
	Source   *source         `json:"source"`
	Metadata json.RawMessage `json:"metadata"`
	MIMEType string          `json:"mimeType"`
	URL      string          `json:"url"`
	Data     string          `json:"data"`
	Filename string          `json:"filename"`
}

type source struct {
	Type     string  `json:"type"`
	Value    *string `json:"value"`
	MIMEType string  `json:"mimeType"`
	Provider string  `json:"provider"`
}

// Domain returns the message as models and middleware see it. It skips parts of
// unknown types, as the spec requires of a producer.
func (m *Message) Domain() (holdfast.Message, error) {
	d := holdfast.Message{
		ID:             m.ID,
		Role:           holdfast.Role(m.Role),
		CallID:         m.ToolCallID,
		Error:          m.Error,
		Name:           m.Name,
		EncryptedValue: m.EncryptedValue,
		Metadata:       m.Metadata,
		Imported:       m.Imported(),
	}
	for _, c := range m.ToolCalls {
		d.Calls = append(d.Calls, holdfast.ToolCall{
			ID:             c.ID,
			Name:           c.Function.Name,
			Arguments:      json.RawMessage(c.Function.Arguments),
			EncryptedValue: c.EncryptedValue,
			Metadata:       c.Metadata,
		})
	}
	content := bytes.TrimSpace(m.Content)
	if m.Role == string(holdfast.RoleActivity) {
		d.Activity = &holdfast.Activity{Type: m.ActivityType, Content: content}
		return d, nil
	}
	if len(content) == 0 {
		return d, nil
	}
	switch content[0] {
	case '"':
		var err error
		d.Text, err = textOf(content)
		return d, err
	case '[':
		var err error
		d.Parts, err = parts(content)
		return d, err
	}
	return d, fmt.Errorf("the content is neither text nor a list of parts")
}

func textOf(content []byte) (string, error) {
	if text, ok := strictjson.ReadString(content); ok {
		return text, nil
	}
	var text string
	if err := json.Unmarshal(content, &text); err != nil {
		return text, fmt.Errorf("the content cannot be read: %w", err)
	}
	return text, nil
}

func parts(content []byte) ([]holdfast.Part, error) {
	var list []part
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("a content part cannot be read: %w", err)
	}
	out := make([]holdfast.Part, 0, len(list))
	for i := range list {
		p, known, err := list[i].domain()
		if err != nil {
			return nil, fmt.Errorf("content part %d: %w", i, err)
		}
		if known {
			out = append(out, p)
		}
	}
	return out, nil
}

func (p *part) domain() (holdfast.Part, bool, error) {
	d := holdfast.Part{Type: holdfast.PartType(p.Type), ID: p.ID, Metadata: withoutMarks(absentIfNull(p.Metadata))}
	switch d.Type {
	case "":
		return d, false, fmt.Errorf("a part has no type")
	case holdfast.PartText:
		if p.Text == nil {
			return d, false, fmt.Errorf("a text part has no text")
		}
		d.Text = *p.Text
		return d, true, nil
	case holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo, holdfast.PartDocument:
		return p.media(d)
	case "binary":
		return p.upgraded()
	}
	return d, false, nil
}

// media reads the source. It skips a part whose source is of an unknown type, just as
// parts of unknown types are skipped.
func (p *part) media(d holdfast.Part) (holdfast.Part, bool, error) {
	s := p.Source
	if s == nil || s.Type == "" {
		return d, false, fmt.Errorf("a media part has no source, or one without a type")
	}
	d.Source = &holdfast.Source{Type: holdfast.SourceType(s.Type), MIMEType: s.MIMEType}
	switch d.Source.Type {
	case holdfast.SourceURL:
	case holdfast.SourceFile:
		d.Source.Provider = s.Provider
	case holdfast.SourceData:
		if s.MIMEType == "" {
			return d, false, fmt.Errorf("a data source has no mimeType")
		}
	default:
		return d, false, nil
	}
	if s.Value == nil {
		return d, false, fmt.Errorf("a source has no value")
	}
	d.Source.Value = *s.Value
	return d, true, nil
}

// upgraded turns a part of the retired binary type into a current one, as the official
// client does.
func (p *part) upgraded() (holdfast.Part, bool, error) {
	d := holdfast.Part{Type: holdfast.PartDocument, Source: &holdfast.Source{MIMEType: p.MIMEType}}
	if p.MIMEType == "" || p.Data == "" && p.URL == "" && p.ID == "" {
		return d, false, fmt.Errorf("a binary part has no mimeType, or none of data, url and id")
	}
	for _, t := range []holdfast.PartType{holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo} {
		if strings.HasPrefix(p.MIMEType, string(t)+"/") {
			d.Type = t
		}
	}
	if p.Filename != "" {
		o := begin(nil)
		o.str("filename", p.Filename)
		d.Metadata = o.end()
	}
	switch {
	case p.Data != "":
		d.Source.Type, d.Source.Value = holdfast.SourceData, p.Data
	case p.URL != "":
		d.Source.Type, d.Source.Value = holdfast.SourceURL, p.URL
	default:
		d.Source.Type, d.Source.Value = holdfast.SourceFile, p.ID
	}
	return d, true, nil
}

// FromDomain is the reverse of Domain.
func FromDomain(d holdfast.Message) Message {
	m := Message{
		ID:             d.ID,
		Role:           string(d.Role),
		ToolCallID:     d.CallID,
		Error:          d.Error,
		Name:           d.Name,
		EncryptedValue: d.EncryptedValue,
		Metadata:       d.Metadata,
	}
	for _, c := range d.Calls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{
			ID:             c.ID,
			Type:           "function",
			Function:       Function{Name: c.Name, Arguments: string(c.Arguments)},
			EncryptedValue: c.EncryptedValue,
			Metadata:       c.Metadata,
		})
	}
	switch {
	case d.Activity != nil:
		m.ActivityType, m.Content = d.Activity.Type, d.Activity.Content
	case len(d.Parts) > 0:
		m.Content = appendParts(nil, d.Parts)
	case d.Text != "" || d.Role != holdfast.RoleAssistant || len(d.Calls) == 0:
		m.Content = appendString(nil, d.Text)
	}
	return m
}

func appendParts(b []byte, list []holdfast.Part) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		p := &list[i]
		o := event(b, Type(p.Type))
		o.opt("id", p.ID)
		if p.Type == holdfast.PartText {
			o.str("text", p.Text)
		} else if p.Source != nil {
			o.key("source")
			s := event(o.b, Type(p.Source.Type))
			s.str("value", p.Source.Value)
			s.opt("mimeType", p.Source.MIMEType)
			if p.Source.Type == holdfast.SourceFile {
				s.opt("provider", p.Source.Provider)
			}
			o.b = s.end()
		}
		o.raw("metadata", p.Metadata)
		b = o.end()
	}
	return append(b, ']')
}
