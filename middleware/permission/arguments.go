package permission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"
)

var errUnclear = errors.New("the arguments have to be one JSON object that names each argument once, spelled as " +
	"in the tool's parameters")

// readJSON reads one JSON value; numbers keep their text. A value that two readers may
// understand differently is refused: an object with two members of the same name, or
// whose names differ only in case, since Go's reader takes the last of them.
func readJSON(data []byte) (any, error) {
	if !json.Valid(data) { // which also bounds the depth
		return nil, errUnclear
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return readValue(d)
}

// readValue reads the next value. The input is known to be valid JSON, so reading a token
// cannot fail.
func readValue(d *json.Decoder) (any, error) {
	token, _ := d.Token()
	switch token {
	case json.Delim('['):
		return readList(d)
	case json.Delim('{'):
		return readObject(d)
	}
	return token, nil
}

func readList(d *json.Decoder) (any, error) {
	list := []any{}
	for d.More() {
		v, err := readValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, _ = d.Token() // the bracket
	return list, nil
}

func readObject(d *json.Decoder) (any, error) {
	members, seen := map[string]any{}, map[string]bool{}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		folded := foldName(name)
		if seen[folded] {
			return nil, errUnclear
		}
		seen[folded] = true
		v, err := readValue(d)
		if err != nil {
			return nil, err
		}
		members[name] = v
	}
	_, _ = d.Token() // the brace
	return members, nil
}

// foldName returns the same text for all names that Go's JSON reader considers equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// lookUp follows a path like "items.0.sku" into a value. A member whose name differs only
// in case is an error, because the tool may or may not take it for the same.
func lookUp(v any, path []string) (found any, ok bool, err error) {
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[step]; !ok {
				return nil, false, misspelled(in, step)
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false, nil
			}
			v = in[i]
		default:
			return nil, false, nil
		}
	}
	return v, true, nil
}

func misspelled(members map[string]any, name string) error {
	for other := range members {
		if strings.EqualFold(other, name) {
			return errUnclear
		}
	}
	return nil
}

// plainJSON encodes a value that consists of text, numbers and valid JSON, which cannot
// fail.
func plainJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
