// Package secret has a type for texts that must not be shown: keys, tokens, URLs that are
// one.
package secret

import (
	"fmt"
	"log/slog"
)

// Text is a text that must not be shown. However it is printed, logged or encoded, [Shown]
// appears in its place; only [Text.Reveal] returns it. The zero value is empty. Secrets
// cannot be compared with ==.
type Text struct {
	_ [0]func() // not comparable: == would compare addresses
	// text is a pointer because fmt calls no methods of what is in a field that is not
	// exported: it prints the address of a pointer there, and would print a string.
	text *string
}

// Shown is what is printed in place of a [Text].
const Shown = "[secret]"

// New returns a secret with that text.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{text: &text}
}

// Reveal returns the text itself.
func (s Text) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is empty.
func (s Text) IsZero() bool { return s.text == nil }

// String returns [Shown], and nothing for an empty secret.
func (s Text) String() string {
	if s.IsZero() {
		return ""
	}
	return Shown
}

// Format implements [fmt.Formatter], so that no verb prints the text.
func (s Text) Format(f fmt.State, _ rune) {
	// An error comes from the writer that the caller chose, who sees it too.
	_, _ = f.Write([]byte(s.String()))
}

// MarshalText implements [encoding.TextMarshaler], for JSON and others.
func (s Text) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements [slog.LogValuer].
func (s Text) LogValue() slog.Value { return slog.StringValue(s.String()) }
