package thread

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Labels of checkpoints, which tools, hooks and people choose.

// MaxLabel is how many bytes a label has at most, and maxLabels those of all that name one
// checkpoint.
const (
	MaxLabel  = 256
	maxLabels = 1000
)

// CheckLabel returns an error for a label that no checkpoint may have.
func CheckLabel(label string) error {
	switch {
	case len(label) > MaxLabel:
		return holdfast.Errorf(codes.InvalidInput, "The label is longer than %d bytes.", MaxLabel).
			WithHint("Send a shorter one.").
			With("field", "label")
	case !utf8.ValidString(label), strings.ContainsFunc(label, unicode.IsControl):
		return holdfast.Errorf(codes.InvalidInput, "The label holds what cannot be shown in a line.").
			WithHint("Send printable characters only.").With("field", "label")
	}
	return nil
}

// JoinLabels returns the label of a checkpoint that has been given several.
func JoinLabels(labels []string) (joined string, fits bool) {
	joined = strings.Join(labels, ", ")
	return joined, len(joined) <= maxLabels
}
