// Package strictjson checks JSON from clients before anything is decoded from it. The
// package encoding/json is generous where a server must not be: of two members with the
// same name the last one counts, names match in any case, and a list of any length is
// decoded before anybody can count it. Check refuses all of that in one pass that keeps
// next to nothing, so that decoding afterwards takes a bounded amount of memory and means
// the same to everybody who reads the same bytes (RFC 8259, section 4).
// Members, Elements and Text then read what Check has accepted, without checking it again.
package strictjson

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// MaxDepth bounds how deep lists and objects may be nested. A client's input becomes part of
// larger values that are stored, whose decoder has a limit of its own.
const MaxDepth = 256

// Kind is what a value must be. null is allowed in place of any kind, since decoders take
// it for absence.
type Kind uint8

// The kinds.
const (
	Any Kind = iota
	String
	List
	Object
)

var wanted = map[Kind]string{String: "a string", List: "a list", Object: "an object"}

// Shape is what a value may look like. A nil Shape, like the zero one, allows any JSON.
type Shape struct {
	// Kind is what the value must be.
	Kind Kind
	// Members are the members of an object that are decoded, by name. Their names must be
	// spelled exactly like this. nil means that there are none.
	Members map[string]*Shape
	// Closed refuses all other members; Hint says what to send instead.
	Closed bool
	Hint   string
	// Elements is what the elements of a list look like.
	Elements *Shape
	// Most bounds the elements of a list, and Total those of all lists of this Shape in one
	// body; 0 means no bound.
	Most, Total int
	// Noun names the elements in errors.
	Noun string
}

// anything is the Shape of what is not decoded.
var anything = &Shape{}

// Counts are the numbers of elements of all lists of a Shape that bounds them.
type Counts map[*Shape]int

// Error says what is wrong, and where. It never repeats a value, and of the names that a
// client chose only those that are needed to find the place, cut to a sensible length.
type Error struct {
	Place   string // such as "messages[3].toolCalls[0].id"; empty for the whole body
	Message string // for a person
	Hint    string // what to do next
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Check refuses a body that is not one JSON value of the shape, encoded as UTF-8, without
// double names, at most MaxDepth deep. The error is an [*Error].
func Check(body []byte, s *Shape) (Counts, error) {
	if !utf8.Valid(body) {
		return nil, &Error{Message: "The body is not UTF-8.", Hint: "Encode it as UTF-8."}
	}
	w := walk{body: body}
	err := w.value(s)
	if w.space(); err == nil && w.at < len(body) {
		err = notJSON
	}
	if err != nil {
		return nil, general(body, err)
	}
	return w.counts, nil
}

// general returns what is wrong with the body as a whole, if anything is, and otherwise the
// error, which is about one place.
func general(body []byte, err *Error) *Error {
	switch {
	case depth(body) > MaxDepth:
		return tooDeep
	case !json.Valid(body):
		return notJSON
	}
	return err
}

// The reason for a refusal without a place.
var (
	notJSON = &Error{
		Message: "The body is not valid JSON.",
		Hint:    "Send one JSON object, complete and with nothing after it.",
	}
	tooDeep = &Error{
		Message: fmt.Sprintf("The body is nested more than %d deep.", MaxDepth),
		Hint:    "Send lists and objects that are less deep; deeper ones can be sent as text.",
	}
)

// Depth returns how deep the lists and objects of a JSON text are nested; for a text that
// is not JSON, at least what its beginning has.
func Depth(text string) int { return depth(text) }

func depth[T ~string | ~[]byte](text T) int {
	now, most, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			now++
			most = max(most, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return most
}
