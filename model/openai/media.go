package openai

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

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
		if p := &from.Parts[i]; p.Type != holdfast.PartText && m.again(p) == nil {
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
		if w := m.again(&from.Parts[i]); w != nil {
			parts = append(parts, w)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []wireMessage{
		{Role: "user", Content: append([]map[string]any{{"type": "text", "text": modelhttp.MadeText}}, parts...)},
	}
}

// again writes a part of an answer that this model has made; nil if it has not, or if the API
// does not take it.
func (m *Model) again(p *holdfast.Part) map[string]any {
	if !m.client.Own(p.EncryptedValue) {
		return nil
	}
	return part(p)
}

// images are the types of images that the API takes, and sounds its names of those of sounds.
var (
	images = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	sounds = map[string]string{
		"audio/wav":   "wav",
		"audio/x-wav": "wav",
		"audio/wave":  "wav",
		"audio/mpeg":  "mp3",
		"audio/mp3":   "mp3",
	}
)

// part writes a part of a user's message; nil if the API does not take it.
func part(p *holdfast.Part) map[string]any {
	if p.Type == holdfast.PartText {
		return textPart(p.Text)
	}
	s := p.Source
	if s == nil {
		return nil
	}
	switch {
	case s.Type == holdfast.SourceData:
		return data(p.Type, s)
	case s.Type == holdfast.SourceURL && p.Type == holdfast.PartImage &&
		(s.MIMEType == "" || slices.Contains(images, modelhttp.MIMEType(s))):
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": s.Value}}
	case s.Type == holdfast.SourceFile && p.Type == holdfast.PartDocument && s.Provider == provider:
		return map[string]any{"type": "file", "file": map[string]any{"file_id": s.Value}}
	}
	return nil
}

func textPart(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// data writes content that is in the message itself: images and sounds of some types, PDFs,
// and documents of text, which every model takes as a text.
func data(kind holdfast.PartType, s *holdfast.Source) map[string]any {
	mime := modelhttp.MIMEType(s)
	url := "data:" + mime + ";base64," + s.Value
	switch {
	case kind == holdfast.PartImage && slices.Contains(images, mime):
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}
	case kind == holdfast.PartAudio && sounds[mime] != "":
		return map[string]any{
			"type":        "input_audio",
			"input_audio": map[string]any{"data": s.Value, "format": sounds[mime]},
		}
	case kind == holdfast.PartDocument && mime == "application/pdf":
		return map[string]any{"type": "file", "file": map[string]any{"filename": "document.pdf", "file_data": url}}
	case kind == holdfast.PartDocument && (strings.HasPrefix(mime, "text/") || mime == "application/json"):
		plain, err := base64.StdEncoding.DecodeString(s.Value)
		if err == nil && len(plain) > 0 && utf8.Valid(plain) {
			return textPart(string(plain))
		}
	}
	return nil
}
