package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

// ToolResultLimit bounds what a tool call adds to the conversation, in bytes. Longer text
// is cut, with a note that gives both sizes; other data that does not fit, such as an
// image, is replaced by a note. Without a positive maximum there is no limit.
func ToolResultLimit(maxBytes int) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.tool_result_limit",
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			if maxBytes <= 0 {
				return next
			}
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				result, err := next(ctx, tool, call)
				if err != nil {
					return holdfast.ToolResult{}, cutError(err, maxBytes)
				}
				result.Text = cut(result.Text, maxBytes)
				result.Parts = cutParts(result.Parts, maxBytes)
				return result, nil
			}
		},
	}
}

// cutError shortens the text of an error, because the model reads it; of an
// [holdfast.Error] that is its message.
func cutError(err error, maxBytes int) error {
	var ask *holdfast.Interrupt
	var end *holdfast.EndRun
	var known *holdfast.Error
	switch {
	case errors.As(err, &ask), errors.As(err, &end):
		return err
	case errors.As(err, &known) && len(known.Message) > maxBytes:
		short := *known
		short.Message, short.Err = cut(known.Message, maxBytes), err
		return &short
	case known != nil || len(err.Error()) <= maxBytes:
		return err
	}
	return &shortError{text: cut(err.Error(), maxBytes), cause: err}
}

// shortError is an error whose text was too long. errors.Is and errors.As still find the
// cause.
type shortError struct {
	text  string
	cause error
}

// Error returns the beginning of the text.
func (e *shortError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *shortError) Unwrap() error { return e.cause }

// cut shortens a text to at most limit bytes and appends a note.
func cut(text string, limit int) string {
	shown := prefix(text, limit)
	if shown == text {
		return text
	}
	return fmt.Sprintf("%s\n[This result was cut: %d of its %d bytes are shown.]", shown, len(shown), len(text))
}

// cutParts shortens parts so that together they stay within the limit. The slice belongs
// to the tool, so it returns a changed copy.
func cutParts(parts []holdfast.Part, limit int) []holdfast.Part {
	if partsSize(parts) <= limit {
		return parts
	}
	out := make([]holdfast.Part, 0, len(parts))
	left := limit
	for _, p := range parts {
		size := partSize(p)
		switch {
		case size <= left:
			left -= size
		case p.Type == holdfast.PartText:
			p.Text = cut(p.Text, left)
			left = 0
		default:
			p = holdfast.Part{Type: holdfast.PartText, ID: p.ID,
				Text: fmt.Sprintf("[This %s was left out: it has %d bytes, and a result may have %d.]", p.Type, size,
					limit)}
		}
		out = append(out, p)
	}
	return out
}
