package modelhttp

// Texts that come in pieces. A provider may cut them anywhere, also within a character: in
// the middle of its bytes, or between the two escapes that JSON writes it with. Decoded
// alone, both halves would be replacement characters, so they are kept until they meet.

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a piece of a text in JSON. Half a character at its ends is kept as bytes that are
// not valid UTF-8: a [Seam] puts them together.
type Text string

// UnmarshalJSON decodes a string, or null.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		*t = Text(b[1 : len(b)-1]) // the common case: nothing to decode
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if *t = Text(s); strings.ContainsRune(s, utf8.RuneError) {
		*t = Text(halves(b[1 : len(b)-1]))
	}
	return nil
}

// escapes are the escapes in JSON of one letter.
var escapes = map[byte]byte{
	'b': '\b',
	'f': '\f',
	'n': '\n',
	'r': '\r',
	't': '\t',
}

// halves decodes what is between the quotes of a valid string. Surrogates become three
// bytes each, as if UTF-8 had them, and bytes remain as they are.
func halves(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c != '\\' || i+1 == len(raw):
			out = append(out, c)
		case raw[i+1] == 'u' && i+6 <= len(raw):
			n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
			if err != nil {
				n = utf8.RuneError
			}
			if r := rune(n); utf16.IsSurrogate(r) {
				out = append(out, surrogateLead, byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
			} else {
				out = utf8.AppendRune(out, r)
			}
			i += 5
		default:
			i++
			if e := escapes[raw[i]]; e != 0 {
				out = append(out, e)
			} else {
				out = append(out, raw[i])
			}
		}
	}
	return []byte(joined(string(out)))
}

// surrogateLead is the first byte of a surrogate. The second is below lowSurrogate for the
// first half of a character.
const (
	surrogateLead = 0xed
	lowSurrogate  = 0xb0
)

// surrogate returns the surrogate that a text begins with; 0 if there is none.
func surrogate(s string) rune {
	if len(s) < 3 || s[0] != surrogateLead || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f)
}

// joined puts surrogates together that belong together.
func joined(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i+6 <= len(s); i++ {
		if r := utf16.DecodeRune(surrogate(s[i:]), surrogate(s[i+3:])); r != utf8.RuneError {
			b.WriteString(s[from:i])
			b.WriteRune(r)
			from, i = i+6, i+5
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// Seam puts the pieces of one text together. Its zero value is the start of a text.
type Seam struct{ held string }

// Join returns what is whole of the text with the next piece, and holds the beginning of a
// character back. Bytes that are no part of a character become a replacement character.
func (j *Seam) Join(piece string) string {
	if j.held == "" && utf8.ValidString(piece) {
		return piece
	}
	s := joined(j.held + piece)
	at := len(s)
	if n := len(s); n >= 3 && surrogate(s[n-3:]) != 0 && s[n-2] < lowSurrogate {
		at = n - 3
	} else {
		for back := 1; back < utf8.UTFMax && back <= n; back++ {
			if utf8.RuneStart(s[n-back]) {
				if !utf8.FullRuneInString(s[n-back:]) {
					at = n - back
				}
				break
			}
		}
	}
	j.held = strings.Clone(s[at:])
	return valid(s[:at])
}

// valid replaces what is no part of a character: half a character, or a byte.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if surrogate(s[i:]) != 0 {
			b.WriteRune(utf8.RuneError)
			i += 3
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		b.WriteRune(r)
		i += size
	}
	return b.String()
}
