package modelhttp

// Images and other media that models make: how an answer has them, and how the model gets
// them back.

import (
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// Made returns what a model has made, of that media type, as a part: data in base64.
func Made(mime, data string) *holdfast.Part {
	kind := holdfast.PartDocument
	for _, t := range []holdfast.PartType{holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo} {
		if strings.HasPrefix(mime, string(t)+"/") {
			kind = t
		}
	}
	return &holdfast.Part{Type: kind, Source: &holdfast.Source{Type: holdfast.SourceData, MIMEType: mime, Value: data}}
}

// MadeAt returns an image that a model has made and that is at a URL, which for most is a
// data: URL with all of it.
func MadeAt(url string) *holdfast.Part {
	head, data, found := strings.Cut(url, ",")
	mime, is := strings.CutPrefix(head, "data:")
	if !is || !found {
		return &holdfast.Part{Type: holdfast.PartImage, Source: &holdfast.Source{Type: holdfast.SourceURL, Value: url}}
	}
	mime, _, _ = strings.Cut(mime, ";")
	return Made(mime, data)
}

// MadeText stands before images that a model gets back as a user's message, because its API
// has no place for them in an answer.
const MadeText = "(You have made this in your last answer:)"

// Own reports whether an encrypted value is this provider's and model's.
func (c *Client) Own(value string) bool {
	_, own := c.unseal(value)
	return own
}

// MIMEType returns the media type of a source in lower case, without parameters.
func MIMEType(s *holdfast.Source) string {
	mime, _, _ := strings.Cut(strings.ToLower(s.MIMEType), ";")
	return strings.TrimSpace(mime)
}

// placed is a part of an answer that is not text, after that many bytes of its text.
type placed struct {
	at   int
	part *holdfast.Part
}

// mediaOf returns the parts of an answer that are not text.
func mediaOf(m *holdfast.Message) (list []placed) {
	at := 0
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == holdfast.PartText {
			at += len(p.Text)
		} else {
			list = append(list, placed{at, p})
		}
	}
	return list
}
