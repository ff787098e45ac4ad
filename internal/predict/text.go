package predict

import "strings"

// text is a text of JSON that is read byte by byte, after its first quote.
type text struct {
	escaped bool // a backslash was read
	hex     int  // how many digits of an escape are missing
	unit    rune // what they are so far
	high    bool // the first half of a pair was read
	bad     bool // it is no text, or none that all clients read alike
}

// take reads a byte. It returns true for the last quote.
func (t *text) take(c byte) (end bool) {
	switch {
	case t.hex > 0:
		t.digit(c)
	case t.escaped && c == 'u':
		t.escaped, t.hex, t.unit = false, 4, 0
	case t.escaped:
		t.escaped = false
		t.bad = t.bad || t.high || !strings.Contains(`"\/bfnrt`, string(rune(c)))
	case c == '\\':
		t.escaped = true
	case t.high || c < ' ':
		t.bad = true
	case c == '"':
		return true
	}
	return false
}

// whole reports whether no escape and no pair is cut here.
func (t *text) whole() bool { return !t.escaped && t.hex == 0 && !t.high }

// digit reads a digit of an escape.
func (t *text) digit(c byte) {
	at := strings.IndexByte("0123456789abcdef0123456789ABCDEF", c)
	if at < 0 {
		t.bad = true
		return
	}
	t.unit = t.unit<<4 | rune(at%16)
	if t.hex--; t.hex > 0 {
		return
	}
	switch first, second := t.unit>>10 == 0xd800>>10, t.unit>>10 == 0xdc00>>10; {
	case second != t.high:
		t.bad = true // half a pair alone
	default:
		t.high = first
	}
}
