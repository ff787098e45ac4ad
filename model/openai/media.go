package openai

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// The API has no place for images in answers. Gateways put those that a model makes beside
// the text; the model gets its own back in a user message after the answer, and other models
// read that there was one.

// said returns the text of an answer.
func (m *Model) said(from *holdfast.Message) string {
	text := from.PlainText()
	for i := range from.Parts {
		if p := &from.Parts[i]; p.Type != holdfast.PartText && !m.client.Own(p.EncryptedValue) {
			if text != "" {
				text += "\n"
			}
			text += modelhttp.LeftOut(p)
		}
	}
	return text
}

// made returns the message with the images of an answer that this model has made; none if it
// has made none.
func (m *Model) made(from *holdfast.Message) []wireMessage {
	if from.Role != holdfast.RoleAssistant {
		return nil
	}
	var parts []map[string]any
	for i := range from.Parts {
		if p := &from.Parts[i]; m.client.Own(p.EncryptedValue) {
			if w := part(p); w != nil {
				parts = append(parts, w)
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []wireMessage{{Role: "user", Content: append([]map[string]any{{"type": "text", "text": modelhttp.MadeText}}, parts...)}}
}
