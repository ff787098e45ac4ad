package strictjson

import (
	"bytes"
	"encoding/json"
	"io"
)

// Canonical writes a value that was read as JSON in one form, so that equal values are equal
// texts: with sorted members and without whitespace. Numbers that were read as [json.Number]
// stay as they were written.
func Canonical(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was read as JSON can be written as JSON
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// CanonicalText is Canonical for a text with one JSON value, whose numbers stay as they are.
// Any other text is returned unchanged.
func CanonicalText(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	if _, err := d.Token(); err != io.EOF {
		return text
	}
	return Canonical(v)
}
