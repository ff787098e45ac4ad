package thread

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Media made by a model, an image for example, are an activity: a message of its own, right
// after the answer that it belongs to. Frontends show it by its type; models are shown it as a
// part of the answer.

// mediaContent is the content of such an activity.
type mediaContent struct {
	// MIMEType is the media type; empty if it is not known.
	MIMEType string `json:"mimeType,omitempty"`
	// URL is where the content is; for most it is a data: URL with all of it.
	URL string `json:"url,omitempty"`
	// Size is how many bytes URL has where it is left out; see Shortened.
	Size int `json:"leftOut,omitempty"`
}

// mediaMark is what the metadata of such an activity says about it.
type mediaMark struct {
	// Of is the id of the answer.
	Of string `json:"of"`
	// At is how many bytes of the answer's text come before it.
	At int `json:"at,omitempty"`
	// EncryptedValue is what the provider needs back.
	EncryptedValue string `json:"encryptedValue,omitempty"`
}

// NewMedia returns the message of what a model has made within the answer of, after that
// many bytes of its text. Its part has data or a URL.
func NewMedia(id, of string, at int, p *holdfast.Part) agui.Message {
	content := mediaContent{MIMEType: p.Source.MIMEType, URL: p.Source.Value}
	if p.Source.Type == holdfast.SourceData {
		content.URL = "data:" + p.Source.MIMEType + ";base64," + p.Source.Value
	}
	return agui.Message{
		ID:           id,
		Role:         string(holdfast.RoleActivity),
		ActivityType: activityPrefix + string(p.Type),
		Content:      MustJSON(content),
		Metadata:     MustJSON(map[string]any{"holdfast": mediaMark{of, at, p.EncryptedValue}}),
	}
}

// Media is what a model has made.
type Media struct {
	// Of is the id of the answer that it belongs to, and At how many bytes of the answer's
	// text come before it.
	Of string
	At int
	holdfast.Part
}

// MediaOf reads what NewMedia has made of it; false for any other message.
func MediaOf(m *agui.Message) (Media, bool) {
	var content mediaContent
	var said struct {
		Holdfast mediaMark `json:"holdfast"`
	}
	if !made(m) || json.Unmarshal(m.Content, &content) != nil || json.Unmarshal(m.Metadata, &said) != nil ||
		said.Holdfast.Of == "" {
		return Media{}, false
	}
	source := &holdfast.Source{Type: holdfast.SourceURL, Value: content.URL, MIMEType: content.MIMEType}
	if data, is := strings.CutPrefix(content.URL, "data:"+content.MIMEType+";base64,"); is {
		source.Type, source.Value = holdfast.SourceData, data
	}
	return Media{Of: said.Holdfast.Of, At: said.Holdfast.At, Part: holdfast.Part{
		Type:           holdfast.PartType(strings.TrimPrefix(m.ActivityType, activityPrefix)),
		Source:         source,
		EncryptedValue: said.Holdfast.EncryptedValue,
	}}, true
}

// With returns the answer with what the model has made at its place in the text.
func (p *Media) With(answer holdfast.Message) holdfast.Message {
	parts := answer.Parts
	if len(parts) == 0 && answer.Text != "" {
		parts = []holdfast.Part{{Type: holdfast.PartText, Text: answer.Text}}
	}
	answer.Text, answer.Parts = "", nil
	at, placed := p.At, false
	for _, part := range parts {
		if n := len(part.Text); part.Type == holdfast.PartText && !placed && at < n {
			if at > 0 {
				answer.Parts = append(answer.Parts, holdfast.Part{Type: holdfast.PartText, Text: part.Text[:at]})
			}
			answer.Parts = append(answer.Parts, p.Part)
			part.Text, placed = part.Text[at:], true
		} else {
			at -= n
		}
		answer.Parts = append(answer.Parts, part)
	}
	if !placed {
		answer.Parts = append(answer.Parts, p.Part)
	}
	return answer
}

// Among returns messages in which the answer has what the model has made. The list is
// another one, because others may read it.
func (p *Media) Among(messages []holdfast.Message) []holdfast.Message {
	changed := slices.Clone(messages)
	for i := len(changed) - 1; i >= 0; i-- {
		if changed[i].ID == p.Of {
			changed[i] = p.With(changed[i])
			break
		}
	}
	return changed
}

// Shortened returns a stored message without the content of the media in it, for a snapshot
// that would be too large for clients; false if it has none, or little.
func Shortened(stored []byte) ([]byte, bool) {
	if !bytes.Contains(stored, []byte(`"activityType":"`+activityPrefix)) {
		return nil, false
	}
	m, err := agui.DecodeMessage(stored)
	if err != nil {
		return nil, false
	}
	media, is := MediaOf(&m)
	if !is || media.Source.Type != holdfast.SourceData || len(media.Source.Value) < MinRef {
		return nil, false
	}
	m.Content = MustJSON(mediaContent{MIMEType: media.Source.MIMEType, Size: len(media.Source.Value)})
	return m.AppendJSON(nil), true
}
