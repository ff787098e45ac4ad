package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// media are the types of content that the API takes in a message, by the type of the part.
var media = map[holdfast.PartType][]string{
	holdfast.PartImage: {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"},
	holdfast.PartAudio: {
		"audio/wav",
		"audio/x-wav",
		"audio/mp3",
		"audio/mpeg",
		"audio/aiff",
		"audio/aac",
		"audio/ogg",
		"audio/flac",
	},
	holdfast.PartVideo: {
		"video/mp4",
		"video/mpeg",
		"video/mpg",
		"video/mov",
		"video/quicktime",
		"video/avi",
		"video/x-flv",
		"video/webm",
		"video/wmv",
		"video/3gpp",
	},
	holdfast.PartDocument: {"application/pdf", "text/plain"},
}

// resultMedia are the types that it takes in a tool's result.
var resultMedia = []string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}

// typeOf returns the media type of a source as the API knows it: all kinds of text are
// plain text to it.
func typeOf(p *holdfast.Part) string {
	mime := modelhttp.MIMEType(p.Source)
	if p.Type == holdfast.PartDocument && (strings.HasPrefix(mime, "text/") || mime == "application/json") {
		return "text/plain"
	}
	return mime
}

// partIn writes a part of a message; nil if the API does not take it.
func partIn(p *holdfast.Part) *part {
	if p.Type == holdfast.PartText {
		if p.Text == "" {
			return nil
		}
		return textPart(p.Text)
	}
	if p.Source == nil {
		return nil
	}
	s, mime := p.Source, typeOf(p)
	known := slices.Contains(media[p.Type], mime)
	switch s.Type {
	case holdfast.SourceURL:
		if len(media[p.Type]) > 0 && (known || mime == "") && strings.HasPrefix(s.Value, "https://") {
			return &part{File: &file{MIMEType: mime, URI: s.Value}}
		}
	case holdfast.SourceFile:
		if s.Provider == provider {
			return &part{File: &file{MIMEType: mime, URI: s.Value}}
		}
	case holdfast.SourceData:
		if known {
			return &part{Data: &data{MIMEType: mime, Data: s.Value}}
		}
	}
	return nil
}

// made writes an image of an earlier answer, if this model has made it: it wants its images
// back with their signatures, and refuses others in an answer, and those without.
func (w *writer) made(p *holdfast.Part) *part {
	if w.bare || !w.client.Own(p.EncryptedValue) || p.Source == nil || p.Source.Type != holdfast.SourceData {
		return textPart(modelhttp.LeftOut(p))
	}
	image := &part{Data: &data{MIMEType: p.Source.MIMEType, Data: p.Source.Value}}
	var s signed
	if blocks := w.client.Unseal(p.EncryptedValue); len(blocks) > 0 && json.Unmarshal(blocks[0], &s) == nil {
		image.Signature = s.Signature
	}
	return image
}

// resultPart writes a part of a tool's result; nil if the API does not take it there.
// Models before the third generation take only text.
func resultPart(model string, p *holdfast.Part) *part {
	if p.Source == nil || p.Source.Type != holdfast.SourceData || strings.HasPrefix(model, "gemini-1") ||
		strings.HasPrefix(model, "gemini-2") {
		return nil
	}
	if mime := typeOf(p); slices.Contains(media[p.Type], mime) && slices.Contains(resultMedia, mime) {
		return &part{Data: &data{MIMEType: mime, Data: p.Source.Value}}
	}
	return nil
}
