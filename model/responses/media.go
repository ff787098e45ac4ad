package responses

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// images are the types of images that the API takes.
var images = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// media writes an image or a document; nil if the API does not take it.
func media(p *holdfast.Part) *content {
	c := &content{Type: "input_file"}
	switch p.Type {
	case holdfast.PartImage:
		// Some servers refuse an image without detail.
		c.Type, c.Detail = "input_image", "auto"
	case holdfast.PartDocument:
	default:
		return nil
	}
	s := p.Source
	switch {
	case s == nil:
		return nil
	case s.Type == holdfast.SourceFile && s.Provider == provider:
		c.FileID = s.Value
	case s.Type == holdfast.SourceURL && p.Type == holdfast.PartImage:
		c.ImageURL = s.Value
	case s.Type == holdfast.SourceURL:
		c.FileURL = s.Value
	case s.Type == holdfast.SourceData:
		return c.with(s)
	default:
		return nil
	}
	return c
}

// with gives an image or a file the content that is in the message itself: images of some
// types, PDFs, and documents of text, which every model takes as a text.
func (c *content) with(s *holdfast.Source) *content {
	mime, _, _ := strings.Cut(strings.ToLower(s.MIMEType), ";")
	mime = strings.TrimSpace(mime)
	data := "data:" + mime + ";base64," + s.Value
	switch {
	case c.Detail != "":
		if !slices.Contains(images, mime) {
			return nil
		}
		c.ImageURL = data
	case mime == "application/pdf":
		c.Filename, c.FileData = "document.pdf", data
	case strings.HasPrefix(mime, "text/") || mime == "application/json":
		plain, err := base64.StdEncoding.DecodeString(s.Value)
		if err != nil || len(plain) == 0 || !utf8.Valid(plain) {
			return nil
		}
		return &content{Type: "input_text", Text: string(plain)}
	default:
		return nil
	}
	return c
}
