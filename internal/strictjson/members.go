package strictjson

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

// Reading a body that Check has accepted. Nothing is checked again, so this takes a small
// part of the time that encoding/json takes for the same. On anything else these functions
// may panic.

// Members passes the members of an object of a checked body: a name without its quotes and
// escapes, and the text of the value. They belong to the body. null has no members.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		w := walk{body: object}
		if w.space() != '{' {
			return
		}
		w.at++
		for w.space() == '"' {
			name := w.skip()
			w.space()
			w.at++ // the colon
			w.space()
			if !yield(withoutQuotes(name), w.skip()) || w.space() == '}' {
				return
			}
			w.at++ // the comma
		}
	}
}

// Elements passes the texts of the elements of a list of a checked body. They belong to the
// body. null has no elements.
func Elements(list []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		w := walk{body: list}
		if w.space() != '[' {
			return
		}
		w.at++
		for w.space() != ']' {
			if !yield(w.skip()) || w.space() == ']' {
				return
			}
			w.at++ // the comma
		}
	}
}

func withoutQuotes(name []byte) []byte {
	if inner := name[1 : len(name)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return []byte(Text(name))
}

// Text returns what a string of a checked body says; for null, it is empty.
func Text(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	text, ok := ReadString(value)
	if !ok {
		// It is a valid string, so there is no error.
		_ = json.Unmarshal(value, &text)
	}
	return text
}

// skip passes a value that is known to be valid, and returns its text.
func (w *walk) skip() []byte {
	from := w.at
	switch w.body[w.at] {
	case '"':
		w.skipString()
	case '{', '[':
		w.skipBrackets()
	default:
		for w.at < len(w.body) && strings.IndexByte(",]} \t\r\n", w.body[w.at]) < 0 {
			w.at++
		}
	}
	return w.body[from:w.at]
}

// skipString passes a string that is known to be valid. It ends at the first quote behind an
// even number of backslashes.
func (w *walk) skipString() {
	for escapes := 1; escapes%2 != 0; {
		w.at++
		w.at += bytes.IndexByte(w.body[w.at:], '"')
		escapes = 0
		for w.body[w.at-1-escapes] == '\\' {
			escapes++
		}
	}
	w.at++
}

// skipBrackets passes a list or an object that is known to be valid.
func (w *walk) skipBrackets() {
	for open := 0; ; {
		switch w.body[w.at] {
		case '"':
			w.skipString()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		w.at++
		if open == 0 {
			return
		}
	}
}
