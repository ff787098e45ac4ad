package agui

// The append encoder: writes the members of JSON objects without allocating, and
// makes it impossible for any event or message to break the stream or a client.

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object writes the members of a JSON object. All encoders of this package use it, so
// that what must never be on the wire (a null for an absent member, a line break,
// invalid UTF-8) cannot occur anywhere.
type object struct {
	b     []byte
	first bool
}

func begin(dst []byte) object { return object{append(dst, '{'), true} }

func (o *object) end() []byte { return append(o.b, '}') }

func (o *object) key(name string) {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// str writes a member that is always present; opt leaves it out if it is empty.
func (o *object) str(name, s string) {
	o.key(name)
	o.b = appendString(o.b, s)
}

func (o *object) opt(name, s string) {
	if s != "" {
		o.str(name, s)
	}
}

// raw writes JSON text unchanged, but on one line. Null is left out: in AG-UI 1.0 an
// absent member is never null.
func (o *object) raw(name string, v json.RawMessage) {
	if len(v) == 0 {
		return
	}
	if text := oneLine(v); string(text) != "null" {
		o.key(name)
		o.b = append(o.b, text...)
	}
}

// obj writes JSON text that clients accept only as an object; it leaves anything else
// out.
func (o *object) obj(name string, v json.RawMessage) {
	if len(v) == 0 {
		return
	}
	if text := oneLine(v); text[0] == '{' {
		o.key(name)
		o.b = append(o.b, text...)
	}
}

// always writes JSON text, or null if there is none: for members that must be
// present.
func (o *object) always(name string, v json.RawMessage) {
	o.key(name)
	o.b = append(o.b, oneLine(v)...)
}

// kind writes a member that must be present and of the form.
func (o *object) kind(name string, v json.RawMessage, f *form) {
	o.key(name)
	if text := oneLine(v); strings.IndexByte(f.first, text[0]) >= 0 {
		o.b = append(o.b, text...)
		return
	}
	o.b = append(o.b, f.otherwise...)
}

// int leaves out negative numbers, which no client accepts.
func (o *object) int(name string, n *int64) {
	if n != nil && *n >= 0 {
		o.key(name)
		o.b = strconv.AppendInt(o.b, *n, 10)
	}
}

// oneLine returns JSON text without line breaks, which would end an SSE data line.
// Text that is empty or not JSON, which cannot come from a decoder, becomes null.
func oneLine(v json.RawMessage) []byte {
	if len(v) == 0 {
		return []byte("null")
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, v); err != nil {
		return []byte("null")
	}
	if !utf8.Valid(buf.Bytes()) {
		return bytes.ToValidUTF8(buf.Bytes(), []byte("\uFFFD"))
	}
	return buf.Bytes()
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. It escapes only what JSON requires;
// invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = appendEscaped(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
