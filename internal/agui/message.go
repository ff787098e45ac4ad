package agui

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

// Message is a message as it travels. Content is a JSON string, or a list of
// parts, or for an activity an object; it stays undecoded until somebody needs
// it.
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

// Function is what a call calls. Arguments is JSON text that nobody has checked.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// DecodeMessage reads one message.
func DecodeMessage(data []byte) (Message, error) {
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
	if len(m.Content) == 0 && m.Role != string(holdfast.RoleAssistant) {
		o.str("content", "")
	} else {
		o.raw("content", m.Content)
	}
	if len(m.ToolCalls) > 0 {
		o.key("toolCalls")
		o.b = append(o.b, '[')
		for i := range m.ToolCalls {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = m.ToolCalls[i].appendJSON(o.b)
		}
		o.b = append(o.b, ']')
	}
	o.opt("activityType", m.ActivityType)
	o.opt("toolCallId", m.ToolCallID)
	o.opt("error", m.Error)
	o.opt("name", m.Name)
	o.opt("encryptedValue", m.EncryptedValue)
	o.raw("metadata", m.Metadata)
	o.opt("subagentRunId", m.SubagentRunID)
	return o.end()
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
	o.raw("metadata", c.Metadata)
	return o.end()
}

// part is a content part as it travels, with the retired binary form.
type part struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Text     *string         `json:"text"`
	Source   *source         `json:"source"`
	Metadata json.RawMessage `json:"metadata"`
	MIMEType string          `json:"mimeType"`
	URL      string          `json:"url"`
	Data     string          `json:"data"`
}

type source struct {
	Type     string `json:"type"`
	Value    string `json:"value"`
	MIMEType string `json:"mimeType"`
	Provider string `json:"provider"`
}

// Domain returns the message as models and middleware see it. Parts of unknown
// types are skipped, as the spec demands of a producer.
func (m *Message) Domain() (holdfast.Message, error) {
	d := holdfast.Message{
		ID: m.ID, Role: holdfast.Role(m.Role), CallID: m.ToolCallID, Error: m.Error, Name: m.Name,
		EncryptedValue: m.EncryptedValue, Metadata: m.Metadata,
	}
	for _, c := range m.ToolCalls {
		d.Calls = append(d.Calls, holdfast.ToolCall{
			ID: c.ID, Name: c.Function.Name, Arguments: json.RawMessage(c.Function.Arguments),
			EncryptedValue: c.EncryptedValue, Metadata: c.Metadata,
		})
	}
	content := bytes.TrimSpace(m.Content)
	if len(content) == 0 || m.Role == string(holdfast.RoleActivity) {
		return d, nil
	}
	switch content[0] {
	case '"':
		if err := json.Unmarshal(content, &d.Text); err != nil {
			return d, fmt.Errorf("the content cannot be read: %w", err)
		}
		return d, nil
	case '[':
		var err error
		d.Parts, err = parts(content)
		return d, err
	}
	return d, fmt.Errorf("the content is neither text nor a list of parts")
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
	d := holdfast.Part{Type: holdfast.PartType(p.Type), ID: p.ID, Metadata: absentIfNull(p.Metadata)}
	switch d.Type {
	case holdfast.PartText:
		if p.Text == nil {
			return d, false, fmt.Errorf("a text part has no text")
		}
		d.Text = *p.Text
		return d, true, nil
	case holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo, holdfast.PartDocument:
		return d, true, p.source(&d)
	case "binary":
		return p.upgraded(), true, nil
	}
	return d, false, nil
}

func (p *part) source(d *holdfast.Part) error {
	if p.Source == nil {
		return fmt.Errorf("a media part has no source")
	}
	d.Source = &holdfast.Source{Type: holdfast.SourceType(p.Source.Type), Value: p.Source.Value, MIMEType: p.Source.MIMEType, Provider: p.Source.Provider}
	switch d.Source.Type {
	case holdfast.SourceURL, holdfast.SourceFile:
	case holdfast.SourceData:
		if d.Source.MIMEType == "" {
			return fmt.Errorf("a data source has no mimeType")
		}
	default:
		return fmt.Errorf("a source has an unknown type")
	}
	return nil
}

// upgraded turns the retired binary part into one of today's.
func (p *part) upgraded() holdfast.Part {
	d := holdfast.Part{Type: holdfast.PartDocument, Source: &holdfast.Source{MIMEType: p.MIMEType}}
	for prefix, t := range map[string]holdfast.PartType{"image/": holdfast.PartImage, "audio/": holdfast.PartAudio, "video/": holdfast.PartVideo} {
		if len(p.MIMEType) > len(prefix) && p.MIMEType[:len(prefix)] == prefix {
			d.Type = t
		}
	}
	switch {
	case p.Data != "":
		d.Source.Type, d.Source.Value = holdfast.SourceData, p.Data
	case p.URL != "":
		d.Source.Type, d.Source.Value = holdfast.SourceURL, p.URL
	default:
		d.Source.Type, d.Source.Value = holdfast.SourceFile, p.ID
	}
	return d
}

// FromDomain is the reverse of Domain.
func FromDomain(d holdfast.Message) Message {
	m := Message{
		ID: d.ID, Role: string(d.Role), ToolCallID: d.CallID, Error: d.Error, Name: d.Name,
		EncryptedValue: d.EncryptedValue, Metadata: d.Metadata,
	}
	for _, c := range d.Calls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{
			ID: c.ID, Type: "function", Function: Function{Name: c.Name, Arguments: string(c.Arguments)},
			EncryptedValue: c.EncryptedValue, Metadata: c.Metadata,
		})
	}
	switch {
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
			s.opt("provider", p.Source.Provider)
			o.b = s.end()
		}
		o.raw("metadata", p.Metadata)
		b = o.end()
	}
	return append(b, ']')
}
