package shared

import (
	"bytes"
	"encoding/json"
)

// CanonicalJSON writes a value that was read as JSON in one form, so that equal values are
// equal texts: with sorted members and without whitespace. Numbers that were read as
// [json.Number] stay as they were written.
func CanonicalJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was read as JSON can be written as JSON
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
