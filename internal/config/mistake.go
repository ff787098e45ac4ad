package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxMistakes keeps a file that is not a configuration at all from filling the screen.
const maxMistakes = 50

// Mistake is one thing that is wrong with the file.
type Mistake struct {
	// Line and Column start at 1.
	Line   int
	Column int
	// Text says what is wrong and what to write instead. It never contains a value that
	// looks like a key.
	Text string
}

// Error is everything that is wrong with a file.
type Error struct {
	File string
	// Mistakes is in the order of the file and never empty.
	Mistakes []Mistake
}

// Error returns one line per mistake, "file:line:column: text", the form that
// editors and terminals make clickable.
func (e *Error) Error() string {
	var b strings.Builder
	for i, m := range e.Mistakes {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == maxMistakes {
			fmt.Fprintf(&b, "%s: and %d more mistakes", e.File, len(e.Mistakes)-i)
			break
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, m.Line, m.Column, m.Text)
	}
	return b.String()
}

// place is a position in the file, from 1.
type place struct {
	line, column int
}

func later(a, b place) place {
	if a.line > b.line || (a.line == b.line && a.column > b.column) {
		return a
	}
	return b
}

// mistakes are those that were found in a file.
type mistakes struct {
	file  string
	found []Mistake
}

func (m *mistakes) mistake(at place, format string, args ...any) {
	m.found = append(m.found, mistakeAt(at, format, args...))
}

// mistakeAt points to the start of the file if the place is not known.
func mistakeAt(at place, format string, args ...any) Mistake {
	return Mistake{Line: max(at.line, 1), Column: max(at.column, 1), Text: fmt.Sprintf(format, args...)}
}

// err returns the mistakes in the order of the file. A mistake behind an anchor is found
// once per alias but reported only once.
func (m *mistakes) err() error {
	if len(m.found) == 0 {
		return nil
	}
	slices.SortStableFunc(m.found, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Text, b.Text))
	})
	return &Error{File: m.file, Mistakes: slices.Compact(m.found)}
}
