package middleware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

func TestToolResultLimit(t *testing.T) {
	t.Parallel()
	m := ToolResultLimit(10)
	tests := []struct{ name, give, want string }{
		{"short", "0123456789", "0123456789"},
		{"long", "0123456789a", "0123456789\n[This result was cut: 10 of its 11 bytes are shown.]"},
		{"between two runes", "012345678é", "012345678\n[This result was cut: 9 of its 11 bytes are shown.]"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		result, err := run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) {
			return holdfast.ToolResult{Text: tt.give}, nil
		}}, m)
		if err != nil || result.Text != tt.want || !utf8.ValidString(result.Text) {
			t.Errorf("%s: got %q, %v", tt.name, result.Text, err)
		}
	}
}

func TestToolResultLimitOfErrorsAndQuestions(t *testing.T) {
	t.Parallel()
	fails := func(err error) stub {
		return stub{f: func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{}, err }}
	}
	short, ask := errors.New("short"), &holdfast.Interrupt{Message: strings.Repeat("why ", 100)}
	if _, err := run(t.Context(), fails(short), ToolResultLimit(10)); err != short {
		t.Errorf("a short error: got %v", err)
	}
	if _, err := run(t.Context(), fails(ask), ToolResultLimit(10)); err != error(ask) {
		t.Errorf("a question: got %v", err)
	}
	result, err := run(t.Context(), fails(errors.New(strings.Repeat("x", 100))), ToolResultLimit(10))
	if err == nil || !strings.HasPrefix(err.Error(), "xxxxxxxxxx\n[") {
		t.Errorf("a long error: got %+v, %v", result, err)
	}
	long := fmt.Errorf("%s: %w", strings.Repeat("x", 100), holdfast.ErrArguments)
	if _, err := run(t.Context(), fails(long), ToolResultLimit(10)); !errors.Is(err, holdfast.ErrArguments) ||
		len(err.Error()) > 80 {
		t.Errorf("a long error with a cause: got %v", err)
	}
	// Of an error with a public text only that text is shown, so only that is cut.
	public := holdfast.Errorf("down", "It is down.").Wrap(errors.New(strings.Repeat("secret ", 100)))
	if _, err := run(t.Context(), fails(public), ToolResultLimit(20)); err != error(public) {
		t.Errorf("a public error with a long cause: got %v", err)
	}
	var known *holdfast.Error
	_, err = run(t.Context(), fails(public), ToolResultLimit(5))
	if !errors.As(err, &known) || !strings.HasPrefix(known.Message, "It is\n[") ||
		strings.Contains(known.Message, "secret") || !errors.Is(err, public) {
		t.Errorf("a long public error: got %v", err)
	}
}

func TestToolResultLimitOfParts(t *testing.T) {
	t.Parallel()
	parts := []holdfast.Part{
		{Type: holdfast.PartText, Text: "12345"},
		{Type: holdfast.PartImage, Source: &holdfast.Source{Type: holdfast.SourceData, Value: strings.Repeat("A", 20)}},
		{Type: holdfast.PartText, Text: "678901234"},
	}
	result, err := run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Parts: parts}, nil
	}}, ToolResultLimit(10))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"12345", "[This image was left out: it has 20 bytes, and a result may have 10.]",
		"67890\n[This result was cut: 5 of its 9 bytes are shown.]"}
	for i, p := range result.Parts {
		if p.Type != holdfast.PartText || p.Text != want[i] || p.Source != nil {
			t.Errorf("part %d: got %+v, want %q", i, p, want[i])
		}
	}
	if parts[2].Text != "678901234" {
		t.Error("the tool's own parts were changed")
	}
}

// TestNoResultLimit: without a positive limit results stay as they are.
func TestNoResultLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	result, err := run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Text: long}, nil
	}}, ToolResultLimit(0))
	if err != nil || result.Text != long {
		t.Errorf("got %d bytes, %v", len(result.Text), err)
	}
}
