package holdfast

import (
	"fmt"
	"log/slog"
)

// Secret is a text that must not be shown: a key, a token, a URL that is one. However it is
// printed, logged or encoded, [SecretText] appears in its place; only [Secret.Reveal] returns
// it. The zero value is an empty secret.
type Secret struct{ text string }

// SecretText is what is printed in place of a [Secret].
const SecretText = "[secret]"

// NewSecret returns a secret with that text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.text == "" }

// String returns [SecretText], and nothing for an empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return SecretText
}

// Format implements [fmt.Formatter], so that no verb prints the text.
func (s Secret) Format(f fmt.State, _ rune) {
	// An error comes from the writer that the caller chose, who sees it too.
	_, _ = f.Write([]byte(s.String()))
}

// MarshalText implements [encoding.TextMarshaler], for JSON and others.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
