package responses

import (
	"bytes"
	"unicode/utf8"
)

// Most events are pieces of text, with these members in this order around it. Some servers
// leave the last two out.
var (
	beforeSequence = []byte(`{"type":"response.output_text.delta","sequence_number":`)
	beforeItem     = []byte(`,"item_id":"`)
	beforeOutput   = []byte(`","output_index":`)
	beforeContent  = []byte(`,"content_index":`)
	beforeText     = []byte(`,"delta":"`)
	afterText      = []byte(`"`)
	noLogprobs     = []byte(`,"logprobs":[]`)
	beforePadding  = []byte(`,"obfuscation":"`)
)

// plainText returns the text of an event that has the usual form, and nothing in it that
// has to be decoded, and the index of its item.
func plainText(data []byte) (text string, index int, ok bool) {
	rest, ok := bytes.CutPrefix(data, beforeSequence)
	if !ok {
		return "", 0, false
	}
	if _, rest, ok = number(rest, beforeItem); !ok {
		return "", 0, false
	}
	if _, rest, ok = plain(rest); !ok {
		return "", 0, false
	}
	if rest, ok = bytes.CutPrefix(rest, beforeOutput); !ok {
		return "", 0, false
	}
	if index, rest, ok = number(rest, beforeContent); !ok {
		return "", 0, false
	}
	if _, rest, ok = number(rest, beforeText); !ok {
		return "", 0, false
	}
	said, rest, ok := plain(rest)
	if !ok {
		return "", 0, false
	}
	rest = bytes.TrimPrefix(rest[len(afterText):], noLogprobs)
	if padded, is := bytes.CutPrefix(rest, beforePadding); is {
		if _, rest, ok = plain(padded); !ok {
			return "", 0, false
		}
		rest = rest[len(afterText):]
	}
	if string(rest) != "}" {
		return "", 0, false
	}
	return string(said), index, true
}

// number reads a number of a few digits and what follows it.
func number(data, follows []byte) (n int, rest []byte, ok bool) {
	digits := 0
	for digits < len(data) && data[digits] >= '0' && data[digits] <= '9' {
		n = n*10 + int(data[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 9 || digits > 1 && data[0] == '0' {
		return 0, nil, false
	}
	rest, ok = bytes.CutPrefix(data[digits:], follows)
	return n, rest, ok
}

// plain reads a string up to its quote, if nothing in it has to be decoded.
func plain(data []byte) (said, rest []byte, ok bool) {
	end := bytes.IndexByte(data, '"')
	if end < 0 {
		return nil, nil, false
	}
	ascii := true
	for _, b := range data[:end] {
		if b < ' ' || b == '\\' {
			return nil, nil, false
		}
		ascii = ascii && b < utf8.RuneSelf
	}
	return data[:end], data[end:], ascii || utf8.Valid(data[:end])
}
