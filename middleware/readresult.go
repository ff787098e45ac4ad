package middleware

import (
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// A result that a prompt shows only a part of is in the thread's history, whole. The tool here
// lets the model come back to it: piece by piece, or to the places that match a pattern. It
// reads what the thread has and nothing else, and each of its own results is short enough to
// be shown whole, so that reading one never calls for reading another.

// ReadResult is the name of the tool that [LargeResults] brings: the model reads, or
// searches, the result of an earlier call of its thread.
const ReadResult = "read_result"

const aboutReadResult = `Reads the result of an earlier tool call of this conversation, of which only a part is ` +
	`shown. Without a pattern it returns the text from offset on. With a pattern it returns the places from offset ` +
	`on that match, with their offsets.`

// readArguments are the arguments of the tool.
type readArguments struct {
	Call    string `json:"call" jsonschema:"the id of the call, as the note in its result has it"`
	Offset  int    `json:"offset,omitempty" jsonschema:"where to begin, in bytes of the result; default 0"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many bytes to return at most"`
	Pattern string `json:"pattern,omitempty" jsonschema:"a regular expression (RE2); begin with (?i) to ignore case"`
}

// maxRead bounds what the tool returns, in bytes, and maxExcerpt what it returns of one
// match; around is how much it shows on both sides of one.
const (
	maxRead    = 16 << 10
	maxExcerpt = 320
	around     = 80
)

// tool returns the tool. Its results are short enough to be shown whole.
func (l *largeResults) tool() holdfast.Tool {
	most := min(maxRead, l.MaxBytes/2)
	return holdfast.NewTool(
		ReadResult,
		aboutReadResult,
		func(ctx context.Context, a readArguments) (holdfast.ToolResult, error) {
			text, err := a.read(holdfast.HistoryFrom(ctx), most)
			if err != nil {
				return holdfast.ToolResult{Text: err.Error(), Failed: true}, nil
			}
			return holdfast.ToolResult{Text: text}, nil
		},
		holdfast.WithEffect(holdfast.EffectPure),
	)
}

// read returns what the arguments ask for. The text of an error is for the model.
func (a *readArguments) read(history []holdfast.Message, most int) (string, error) {
	text, err := resultOf(history, a.Call)
	switch {
	case err != nil:
		return "", err
	case a.Offset < 0 || a.Limit < 0:
		return "", fmt.Errorf("offset and limit are not negative; nothing was read")
	case a.Offset > 0 && a.Offset >= len(text):
		return "", fmt.Errorf("the result has %d bytes, so there is nothing at offset %d", len(text), a.Offset)
	}
	limit := most
	if a.Limit > 0 {
		limit = min(limit, a.Limit)
	}
	if a.Pattern == "" {
		return piece(text, a.Offset, limit), nil
	}
	pattern, err := searchable(a.Pattern, len(text))
	if err != nil {
		return "", fmt.Errorf("the pattern cannot be used: %w", err)
	}
	return matches(text, a.Offset, limit, pattern), nil
}

// The bounds of a search: the time of one grows with the text and with the program of the
// pattern, in which x{1000} has a thousand instructions.
const (
	maxPattern = 500     // bytes
	maxProgram = 5_000   // instructions
	maxSearch  = 1 << 30 // instructions times bytes of the text
)

// searchable compiles a pattern for a text of so many bytes.
func searchable(pattern string, size int) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("it has %d bytes, %d are allowed", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	// A pattern that cannot be compiled here cannot be compiled below, which says why.
	program, err := syntax.Compile(parsed.Simplify())
	if most := min(maxProgram, maxSearch/max(size, 1)); err == nil && len(program.Inst) > most {
		return nil, fmt.Errorf("for a result of this size it may have %d instructions, and it has %d: leave out "+
			"repetitions like {1000}", most, len(program.Inst))
	}
	return regexp.Compile(pattern)
}

// resultOf returns the text of a call's result.
func resultOf(history []holdfast.Message, call string) (string, error) {
	for i := len(history) - 1; i >= 0; i-- {
		m := &history[i]
		switch {
		case m.Role == holdfast.RoleTool && m.CallID == call:
			if text := m.PlainText(); len(text) > len(m.Error) {
				return text, nil
			}
			return m.Error, nil // of a failed call; what is beside it is short
		case slices.ContainsFunc(m.Calls, func(c holdfast.ToolCall) bool { return c.ID == call }):
			return "", fmt.Errorf("the call %q has no result yet", call)
		}
	}
	return "", fmt.Errorf("there is no call %q in this conversation; the note in a shortened "+
		"result has the id of its call", call)
}

// piece returns a part of a text, and where it stands.
func piece(text string, offset, limit int) string {
	from := runeStart(text, offset)
	part := prefix(text[from:], max(limit, utf8.UTFMax))
	end := from + len(part)
	if end == len(text) {
		return fmt.Sprintf("%s\n[bytes %d to %d: the end]", part, from, end)
	}
	return fmt.Sprintf("%s\n[bytes %d to %d of %d; go on with offset %d]", part, from, end, len(text), end)
}

// matches returns the places in a text that match.
func matches(text string, offset, limit int, pattern *regexp.Regexp) string {
	var b strings.Builder
	shown, n := offset, 0 // shown is where what was returned ends
	for _, at := range pattern.FindAllStringIndex(text, -1) {
		if at[0] == at[1] || at[0] < shown {
			continue
		}
		from := runeStart(text, max(at[0]-around, shown))
		part := prefix(text[from:min(at[1]+around, len(text))], maxExcerpt)
		if n > 0 && b.Len()+len(part) > limit {
			return fmt.Sprintf("%s[%d places are shown; go on with offset %d]", b.String(), n, at[0])
		}
		n++
		fmt.Fprintf(&b, "offset %d: %s\n", from, part)
		shown = max(from+len(part), at[0]+1)
	}
	if n == 0 {
		return fmt.Sprintf("[nothing from offset %d on matches, of %d bytes]", offset, len(text))
	}
	return fmt.Sprintf("%s[these are all places from offset %d on, of %d bytes]", b.String(), offset, len(text))
}

// runeStart returns the index of the character that the index is in.
func runeStart(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// suffix returns the last bytes of a text, at most limit of them, without splitting a
// character.
func suffix(text string, limit int) string {
	from := max(len(text)-limit, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
