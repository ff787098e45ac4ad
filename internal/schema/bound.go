package schema

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// The bounds of what a schema may cost. Schemas and what is checked against them come from
// clients, tool servers and documents from elsewhere, so each has a budget of steps: reading a
// schema (this file) and checking a value (check.go). A step is the look at one value, one
// part of a schema, or a few dozen bytes of text; it takes well below a microsecond. The count
// does not depend on the machine, so the same schema is always refused or never.

const (
	// MaxBytes bounds the text of a schema.
	MaxBytes = 512 << 10
	// MaxReading bounds the steps of reading a schema.
	MaxReading = 100_000
	// MaxChecking bounds the steps of checking one value.
	MaxChecking = 500_000
	// maxNesting bounds how many schemas are inside of one another while a value is checked.
	maxNesting = 5_000
	// bytesPerStep is how much text is looked at in a step.
	bytesPerStep = 64
)

// BoundError says that a schema, or a check of a value, would take more than it may. Nothing
// is known about the value then.
type BoundError struct {
	// Bound is what is allowed, such as "a check of at most 500,000 steps".
	Bound string
}

// Error implements error.
func (e *BoundError) Error() string { return "it takes more than allowed: " + e.Bound }

func errReading() error {
	const text = "a schema of at most %d KiB that takes at most %s steps to read"
	return &BoundError{Bound: fmt.Sprintf(text, MaxBytes>>10, thousands(MaxReading))}
}

func errChecking() error {
	return &BoundError{Bound: fmt.Sprintf("a check of at most %s steps", thousands(MaxChecking))}
}

// parts returns how many values JSON text has, or a few more.
func parts(raw []byte) int {
	n, inText := 1, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case !inText && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}

// thousands returns a number as people read it.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// reading counts the steps that the library takes to read a schema. They are known before
// it begins: it looks at each value a few times, carries the path to each object, looks for
// each among all that it has seen, and reads what a $ref leads to again unless that is among
// the places where schemas are.
type reading struct {
	legacy  bool // a part is of a draft that does not have $defs
	values  int
	paths   int
	objects int
	ids     int
	refs    map[string]bool
}

// sizeBounded returns a [*BoundError] for a text that is too large for a schema.
func sizeBounded(raw []byte) error {
	if len(raw) > MaxBytes || parts(raw) > MaxReading {
		return errReading()
	}
	return nil
}

// bounded returns a [*BoundError] for a schema that takes too long to read.
func bounded(doc any, p *patterns) error {
	r := &reading{refs: map[string]bool{}}
	r.count(doc, 1)
	objects := r.objects
	for ref := range r.refs {
		if r.amongSchemas(ref) {
			continue
		}
		target, there := follow(doc, ref)
		if !there {
			target = doc // relative to a part, which is smaller
		}
		if err := p.strip(target); err != nil {
			return err
		}
		r.paths += objects
		r.count(target, 1)
		if r.steps(p) > MaxReading {
			break
		}
	}
	if r.steps(p) > MaxReading {
		return errReading()
	}
	return nil
}

func (r *reading) steps(p *patterns) int {
	return r.values + r.paths + r.objects*(r.objects/1_000+r.ids) + p.size
}

// count counts a value and all that is in it.
func (r *reading) count(v any, depth int) {
	r.values++
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			r.count(item, depth+1)
		}
	case map[string]any:
		r.objects++
		r.paths += depth
		for name, member := range v {
			r.paths += len(name) / bytesPerStep
			r.note(name, member)
			r.count(member, depth+1)
		}
	case string:
		r.values += len(v) / bytesPerStep
	case json.Number:
		if strings.ContainsAny(string(v), "eE") || len(v) > 20 {
			r.values += 10
		}
	}
}

// note notes what a member means for reading the rest.
func (r *reading) note(name string, member any) {
	text, is := member.(string)
	if !is {
		return
	}
	switch name {
	case "$id", "id":
		r.ids++
	case "$schema":
		r.legacy = r.legacy || strings.Contains(text, "json-schema.org/draft-0")
	case "$ref", "$dynamicRef", "$recursiveRef":
		r.refs[text] = true
	}
}

// amongSchemas reports whether a reference leads to where schemas are, so that the library
// has it already.
func (r *reading) amongSchemas(ref string) bool {
	rest, local := strings.CutPrefix(ref, "#")
	if !local || strings.Contains(rest, "%") {
		return false
	}
	rest, deeper := strings.CutPrefix(rest, "/")
	if !deeper {
		return true // the whole, or an anchor
	}
	steps := strings.Split(rest, "/")
	for len(steps) > 0 {
		n := r.place(steps)
		if n == 0 || n > len(steps) {
			return false
		}
		steps = steps[n:]
	}
	return true
}

// place returns how many steps lead from a schema to one inside of it; 0 if they do not
// begin with a keyword for that.
func (r *reading) place(steps []string) int {
	switch steps[0] {
	case "not", "additionalProperties", "items":
		return 1
	case "definitions", "properties":
		return 2
	case "$defs":
		if !r.legacy {
			return 2
		}
	case "allOf", "anyOf", "oneOf":
		if len(steps) > 1 {
			// "01" would be the same place by another name.
			if n, err := strconv.Atoi(steps[1]); err == nil && strconv.Itoa(n) == steps[1] {
				return 2
			}
		}
	}
	return 0
}

// follow returns what a reference's fragment leads to.
func follow(doc any, ref string) (any, bool) {
	_, fragment, _ := strings.Cut(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if err != nil || !strings.HasPrefix(fragment, "/") {
		return nil, false
	}
	for step := range strings.SplitSeq(fragment[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := doc.(type) {
		case map[string]any:
			member, there := v[step]
			if !there {
				return nil, false
			}
			doc = member
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}
