package strictjson

import (
	"encoding/binary"
	"math/bits"
)

// The tokens of JSON (RFC 8259, sections 2, 6 and 7): white space, strings, numbers and
// literals. Every byte of a request passes here, so strings, which are most of it, are read
// eight bytes at a time.

// space moves to the next byte that is not white space, and returns it; 0 at the end of
// the body.
func (w *walk) space() byte {
	for ; w.at < len(w.body); w.at++ {
		switch c := w.body[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// quoted passes a string, and returns what is between its quotes.
func (w *walk) quoted() (span, *Error) {
	from := w.at + 1
	for i := plain(w.body, from); i < len(w.body); i = plain(w.body, i) {
		switch w.body[i] {
		case '"':
			w.at = i + 1
			return span{uint32(from), uint32(i)}, nil
		case '\\':
			n := escape(w.body[i:])
			if n == 0 {
				return span{}, notJSON
			}
			i += n
		default: // a control character
			return span{}, notJSON
		}
	}
	return span{}, notJSON
}

// plain returns where, from i on, a string ends or holds something special: a quote, a
// backslash or a control character.
func plain(b []byte, i int) int {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		// x-n sets the high bit of each byte below n, up to 0x80. A borrow can set others,
		// too, but only behind the first.
		quote, slash := x^('"'*ones), x^('\\'*ones)
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// escape returns how long the escape is with which b begins; 0 if it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !digit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// scalar passes a number, true, false or null that begins with c.
func (w *walk) scalar(c byte) *Error {
	switch c {
	case 't':
		return w.literal("true")
	case 'f':
		return w.literal("false")
	case 'n':
		return w.literal("null")
	}
	n := number(w.body[w.at:])
	if n == 0 {
		return notJSON
	}
	w.at += n
	return nil
}

func (w *walk) literal(word string) *Error {
	if len(w.body)-w.at < len(word) || string(w.body[w.at:w.at+len(word)]) != word {
		return notJSON
	}
	w.at += len(word)
	return nil
}

// number returns how long the number is with which b begins; 0 if it is none.
func number(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := digits(b[i:])
	if whole == 0 || whole > 1 && b[i] == '0' {
		return 0
	}
	i += whole
	if i < len(b) && b[i] == '.' {
		n := digits(b[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
	return i
}

// digits returns with how many digits b begins.
func digits(b []byte) int {
	n := 0
	for n < len(b) && digit(b[n]) {
		n++
	}
	return n
}
