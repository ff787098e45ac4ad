package strictjson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Reading what nobody has checked, in one pass. It is for values that this server has written:
// they have one form, which is read here in a small part of the time that encoding/json takes.
// All other forms are left to encoding/json, so nothing is refused here.

// ReadObject passes the members of an object that nobody has checked to each: a name without its
// quotes, and the text of the value, which is valid JSON. Both belong to data. It reports false
// if data is no object that can be read like this, or if each does; each may have been called
// by then.
func ReadObject(data []byte, each func(name, value []byte) bool) bool {
	if !utf8.Valid(data) {
		return false
	}
	w := walk{body: data}
	if w.space() != '{' {
		return false
	}
	w.at++
	over := w.space() == '}'
	if over {
		w.at++
	}
	for !over {
		name, value, ok := w.plainMember()
		if !ok || !each(name, value) {
			return false
		}
		end, err := w.next('}')
		if err != nil {
			return false
		}
		over = end
	}
	w.space()
	return w.at == len(data)
}

// plainMember passes a member whose name has no escapes.
func (w *walk) plainMember() (name, value []byte, ok bool) {
	if w.space() != '"' {
		return nil, nil, false
	}
	quoted, err := w.quoted()
	if err != nil || w.space() != ':' {
		return nil, nil, false
	}
	w.at++
	w.space()
	from := w.at
	if w.value(anything) != nil {
		return nil, nil, false
	}
	name = w.text(quoted)
	return name, w.body[from:w.at:w.at], bytes.IndexByte(name, '\\') < 0
}

// ReadString returns what a string that nobody has checked says. It reports false for what is no
// string, and for one with escapes of other characters than those that have a letter.
func ReadString(value []byte) (string, bool) {
	last := len(value) - 1
	if last < 1 || value[0] != '"' || !utf8.Valid(value) {
		return "", false
	}
	at := plain(value, 1)
	if at == last && value[at] == '"' {
		return string(value[1:at]), true
	}
	var text strings.Builder
	text.Grow(last)
	from := 1
	for ; at < last && value[at] == '\\'; at = plain(value, from) {
		c := lettered[value[at+1]]
		if c == 0 {
			return "", false
		}
		text.Write(value[from:at])
		text.WriteByte(c)
		from = at + 2
	}
	if at != last || value[at] != '"' {
		return "", false
	}
	text.Write(value[from:at])
	return text.String(), true
}

// lettered are the characters that an escape of one letter stands for.
var lettered = [256]byte{
	'"':  '"',
	'\\': '\\',
	'/':  '/',
	'b':  '\b',
	'f':  '\f',
	'n':  '\n',
	'r':  '\r',
	't':  '\t',
}
