// Package predict reads the arguments of a tool call while a model still writes them, and says
// what they are so far: the values that are complete, and texts that grow. It is pure.
package predict

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// JSON has no operation that makes a text longer, so each time that a text is shown, all of it is sent. It is
// therefore shown when it has grown by a sixteenth: whatever its length, all that is sent of it is at most
// seventeen times as long. Nothing depends on how the arguments are cut into pieces in time.

const (
	// MaxBytes is the size of the longest value that is shown, as JSON.
	MaxBytes = 64 << 10
	// growth is the part of a text by which it must have grown, and least how many bytes at
	// least.
	growth, least = 16, 16
	// maxDepth is how deep a value may be that is shown.
	maxDepth = 100
)

// Value is the value of an argument, or the beginning of its text.
type Value struct {
	Name string
	JSON []byte
}

// Arguments are those of one call, of which some are watched. Each byte is looked at once.
type Arguments struct {
	watched []string
	phase   phase
	at      int  // of the next byte
	text    text // the one that at is in
	depth   int  // of the value that at is in, without its texts
	quoted  bool // at is in a text of a value
	name    string
	start   int // of the name or the value that at is in
	// safe is the end of the text that is so far whole: no escape and no pair is cut there.
	safe int
	// shown is how much of the text was returned, from start.
	shown int
}

// phase is what comes next.
type phase int

const (
	object phase = iota // the object
	name                // a name, or the object's end
	inName
	colon
	value
	inText
	inNested
	inScalar
	comma // or the object's end
	over  // nothing that is of interest
)

// Of returns the arguments of a call of which none has come yet.
func Of(watched ...string) *Arguments { return &Arguments{watched: watched} }

// Read takes all that has come of the arguments, and returns the values that are to be shown now. It
// ends with the first byte that JSON cannot have there.
func (a *Arguments) Read(args []byte) (values []Value) {
	for ; a.at < len(args) && a.phase != over; a.at++ {
		whole := a.step(args)
		if whole == nil || !a.watches() {
			continue
		}
		switch {
		case !json.Valid(whole) || !utf8.Valid(whole):
			a.phase = over
		case len(whole) <= MaxBytes && (a.shown == 0 || len(whole)-1 != a.shown):
			values = append(values, Value{a.name, slices.Clone(whole)})
		}
	}
	if v, grown := a.grown(args); grown {
		values = append(values, v)
	}
	return values
}

func (a *Arguments) watches() bool { return slices.Contains(a.watched, a.name) }

// grown returns the beginning of the text that at is in, if it is to be shown.
func (a *Arguments) grown(args []byte) (v Value, grown bool) {
	if a.phase != inText || !a.watches() {
		return v, false
	}
	end := a.safe
	for back := 0; back < utf8.UTFMax && end > a.start+1; back++ {
		if r, size := utf8.DecodeLastRune(args[a.start:end]); r != utf8.RuneError || size != 1 {
			break
		}
		end-- // a character that is cut
	}
	has := end - a.start // with its first quote
	if has <= 1 || has > MaxBytes || a.shown > 0 && has-a.shown < max(least, a.shown/growth) {
		return v, false
	}
	if !utf8.Valid(args[a.start:end]) {
		a.phase = over
		return v, false
	}
	a.shown = has
	return Value{a.name, append(slices.Clone(args[a.start:end]), '"')}, true
}

// step takes the byte at at. It returns the value that ends with it, or in front of it.
func (a *Arguments) step(args []byte) (whole []byte) {
	c := args[a.at]
	switch a.phase {
	case inName:
		a.named(args)
	case inText:
		if a.text.take(c) {
			a.phase = comma
			return args[a.start : a.at+1]
		}
		if a.text.whole() {
			a.safe = a.at + 1
		}
		a.endIf(a.text.bad)
	case inNested:
		return a.nested(args)
	case inScalar:
		if c == ',' || c == '}' || space(c) {
			whole = args[a.start:a.at]
			a.phase = comma
			a.between(c)
		}
		return whole
	default:
		a.between(c)
	}
	return nil
}

func (a *Arguments) endIf(bad bool) {
	if bad {
		a.phase = over
	}
}

// between takes a byte that is in no name and no value.
func (a *Arguments) between(c byte) {
	switch {
	case space(c):
	case a.phase == object && c == '{':
		a.phase = name
	case a.phase == name && c == '"':
		a.begin(inName)
	case a.phase == colon && c == ':':
		a.phase = value
	case a.phase == value && c == '"':
		a.begin(inText)
		a.safe = a.at + 1
	case a.phase == value && (c == '{' || c == '['):
		a.begin(inNested)
		a.depth = 1
	case a.phase == value && c != ',' && c != '}' && c != ']' && c != ':':
		a.begin(inScalar)
	case a.phase == comma && c == ',':
		a.phase = name
	default:
		a.phase = over
	}
}

func (a *Arguments) begin(p phase) {
	a.phase, a.start, a.text, a.quoted, a.shown = p, a.at, text{}, false, 0
}

// named takes a byte of a name.
func (a *Arguments) named(args []byte) {
	if a.text.take(args[a.at]) {
		a.phase = colon
		a.endIf(json.Unmarshal(args[a.start:a.at+1], &a.name) != nil)
	}
	a.endIf(a.text.bad)
}

// nested takes a byte of an object or an array.
func (a *Arguments) nested(args []byte) (whole []byte) {
	c := args[a.at]
	switch {
	case a.quoted:
		a.quoted = !a.text.take(c)
		a.endIf(a.text.bad)
	case c == '"':
		a.quoted, a.text = true, text{}
	case c == '{' || c == '[':
		a.depth++
		a.endIf(a.depth > maxDepth)
	case c == '}' || c == ']':
		if a.depth--; a.depth == 0 {
			a.phase = comma
			return args[a.start : a.at+1]
		}
	}
	return nil
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
