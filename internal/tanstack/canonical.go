package tanstack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The client knows the schema of an answer by its hash: that of its JSON without spaces and with the members of
// objects in order, written as JavaScript writes it.

// schemaHash returns the hash of a schema; false if it is not JSON that the client would write in the same way.
func schemaHash(schema json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return "", false
	}
	sum := sha256.Sum256(canonical(nil, v))
	return "sha256:" + hex.EncodeToString(sum[:]), true
}

// canonical appends a value that a decoder has returned.
func canonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		dst = append(dst, '[')
		for i := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = canonical(dst, v[i])
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.SortedFunc(maps.Keys(v), inUTF16) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(quoted(dst, name), ':')
			dst = canonical(dst, v[name])
		}
		return append(dst, '}')
	case string:
		return quoted(dst, v)
	case float64:
		return append(dst, encoded(v+0)...) // -0 is written as 0
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return append(dst, "null"...)
}

// inUTF16 compares strings as JavaScript does.
func inUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// quoted appends a string as JSON. Of all characters, the two separators of lines are those that Go escapes and
// JavaScript does not.
func quoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for s != "" {
		n := strings.IndexAny(s, "\u2028\u2029")
		if n < 0 {
			n = len(s)
		}
		part := encoded(s[:n])
		dst = append(dst, part[1:len(part)-1]...)
		if s = s[n:]; s != "" {
			const size = len("\u2028")
			dst, s = append(dst, s[:size]...), s[size:]
		}
	}
	return append(dst, '"')
}

// encoded returns a value as JSON. Nothing here can fail to be written.
func encoded(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("tanstack: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
