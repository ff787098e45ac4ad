package agui

// Decoding events by the table.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// DecodeEvent reads one event of any of the 31 types. Unknown members are ignored; a known
// member of the wrong type, or a missing payload, is an error. It accepts empty ids, as the
// official client does; the sequence machine refuses them.
func DecodeEvent(data []byte) (Event, error) {
	var head struct {
		Type Type `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("decode an event: %w", err)
	}
	k := byType[head.Type]
	if k == nil {
		return nil, fmt.Errorf("decode an event: unknown type %q", head.Type)
	}
	p := reflect.New(k.is)
	if err := json.Unmarshal(data, p.Interface()); err != nil {
		return nil, fmt.Errorf("decode %s: %w", head.Type, err)
	}
	if name := missing(p.Elem(), k.members); name != "" {
		return nil, fmt.Errorf("decode %s: %s is missing or has the wrong type", head.Type, name)
	}
	return p.Elem().Interface().(Event), nil
}

// missing returns the name of a payload that a struct lacks.
func missing(v reflect.Value, list []member) string {
	for i := range list {
		m := &list[i]
		f := v.Field(m.at)
		switch {
		case m.of != "" && m.of != v.Field(0).String():
		case f.Kind() == reflect.Pointer && !f.IsNil():
			if name := missing(f.Elem(), m.elements); name != "" {
				return m.name + "." + name
			}
		case f.Kind() == reflect.Slice && !m.optional:
			if m.of != "" && f.Len() == 0 || m.json && !m.is.fits(f.Bytes()) {
				return m.name
			}
		}
	}
	return ""
}

// fits reports whether JSON text is there, and of the form.
func (f *form) fits(text []byte) bool {
	return len(text) > 0 && (f == nil || strings.IndexByte(f.first, text[0]) >= 0)
}

// TypeOf returns the type of an event in this package's own encoding, without
// parsing it.
func TypeOf(data []byte) Type {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return ""
	}
	if k := byType[Type(rest[:end])]; k != nil {
		return k.Type // without allocating
	}
	return Type(rest[:end])
}
