package anthropic

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// images are the types of images that the API takes.
var images = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// part writes a part of a message; nil if the API does not take it.
func part(p *holdfast.Part) *content {
	if p.Type == holdfast.PartText {
		if blank(p.Text) {
			return nil
		}
		return &content{Type: blockText, Text: p.Text}
	}
	kind := map[holdfast.PartType]string{holdfast.PartImage: "image", holdfast.PartDocument: "document"}[p.Type]
	if kind == "" || p.Source == nil {
		return nil
	}
	s := p.Source
	switch s.Type {
	case holdfast.SourceURL:
		if mime := modelhttp.MIMEType(s); mime == "" || kind == "image" && slices.Contains(images, mime) ||
			kind == "document" && mime == "application/pdf" {
			return &content{Type: kind, Source: &source{Type: "url", URL: s.Value}}
		}
	case holdfast.SourceFile:
		if s.Provider == provider {
			return &content{Type: kind, Source: &source{Type: "file", FileID: s.Value}}
		}
	case holdfast.SourceData:
		if from := data(kind, s); from != nil {
			return &content{Type: kind, Source: from}
		}
	}
	return nil
}

// data writes content that is in the message itself: images of some types, PDFs, and
// documents of text.
func data(kind string, s *holdfast.Source) *source {
	mime := modelhttp.MIMEType(s)
	switch {
	case kind == "image" && slices.Contains(images, mime), kind == "document" && mime == "application/pdf":
		return &source{Type: "base64", MediaType: mime, Data: s.Value}
	case kind == "document" && (strings.HasPrefix(mime, "text/") || mime == "application/json"):
		text, err := base64.StdEncoding.DecodeString(s.Value)
		if err == nil && utf8.Valid(text) && !blank(string(text)) {
			return &source{Type: "text", MediaType: "text/plain", Data: string(text)}
		}
	}
	return nil
}
