package middleware

import (
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// prefix returns the first bytes of a text, at most limit of them, without splitting a
// character.
func prefix(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n := limit
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// messageSize estimates how many bytes a message adds to a request.
func messageSize(m *holdfast.Message) int {
	n := len(m.Text) + len(m.Error) + len(m.EncryptedValue) + partsSize(m.Parts)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

func partsSize(parts []holdfast.Part) int {
	size := 0
	for _, p := range parts {
		size += partSize(p)
	}
	return size
}

func partSize(p holdfast.Part) int {
	size := len(p.Text) + len(p.Metadata)
	if p.Source != nil {
		size += len(p.Source.Value)
	}
	return size
}
