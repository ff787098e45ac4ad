package strictjson

import "unicode/utf8"

// AppendText appends a text as a JSON string, byte for byte as [encoding/json.Marshal] writes it.
func AppendText(b []byte, text string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(text); {
		size := 1
		if c := text[i]; c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		} else if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
			i++
			continue
		}
		b = appendEscape(append(b, text[from:i]...), text[i:i+size])
		i += size
		from = i
	}
	return append(append(b, text[from:]...), '"')
}

// appendEscape appends what stands in a JSON string for a character, or for a byte that is none.
func appendEscape(b []byte, char string) []byte {
	switch c := char[0]; c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	const digits = "0123456789abcdef"
	r, _ := utf8.DecodeRuneInString(char)
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
