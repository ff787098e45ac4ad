package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Cursor is a position in a thread's log: the number of the last record seen
// and the tag of the fence that wrote it. The zero Cursor is before the first
// record.
type Cursor struct {
	// Number is the record's number, from 1.
	Number uint64
	// Tag is the [Fence.Tag] that the record was written under.
	Tag string
}

// String returns the form that travels as the SSE id: "number-tag". That of the zero
// Cursor is empty, and [ParseCursor] reads both.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return string(c.Append(make([]byte, 0, 24)))
}

// Append appends the form of String to b.
func (c Cursor) Append(b []byte) []byte {
	b = strconv.AppendUint(b, c.Number, 10)
	b = append(b, '-')
	return append(b, c.Tag...)
}

// MarshalText writes the form of String; the zero Cursor is empty.
func (c Cursor) MarshalText() ([]byte, error) {
	if c == (Cursor{}) {
		return nil, nil
	}
	return c.Append(nil), nil
}

// UnmarshalText reads the form of String.
func (c *Cursor) UnmarshalText(b []byte) error {
	parsed, err := ParseCursor(string(b))
	*c = parsed
	return err
}

// ErrCursorSyntax is wrapped by the errors of [ParseCursor].
var ErrCursorSyntax = errors.New(`a cursor looks like "12-x7k2ab": the id of the last event you received`)

// ParseCursor reads the form of [Cursor.String]. The empty string is the zero
// Cursor.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	number, tag, found := strings.Cut(s, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if !found || !isTag(tag) || err != nil || n == 0 || number[0] == '0' || number[0] == '+' {
		return Cursor{}, fmt.Errorf("%.40q: %w", s, ErrCursorSyntax)
	}
	return Cursor{Number: n, Tag: tag}, nil
}

// isTag reports whether s may be a tag: it is short, and nothing in it could end a line.
func isTag(s string) bool {
	return s != "" && len(s) <= 2*TagLength &&
		!strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
