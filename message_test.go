package holdfast_test

import (
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestPlainText: of content in parts the text parts are the text.
func TestPlainText(t *testing.T) {
	t.Parallel()
	m := holdfast.Message{
		Text:  "a",
		Parts: []holdfast.Part{{Type: holdfast.PartText, Text: "b"}, {Type: holdfast.PartImage, Text: "not this"}},
	}
	if got := m.PlainText(); got != "b" {
		t.Errorf("got %q", got)
	}
}

func TestPlainTextWithoutParts(t *testing.T) {
	t.Parallel()
	if got := (&holdfast.Message{Text: "a"}).PlainText(); got != "a" {
		t.Errorf("got %q", got)
	}
}
