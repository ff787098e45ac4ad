package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	infer "github.com/google/jsonschema-go/jsonschema"
)

// For infers the schema of a Go struct, or of a map with string keys: json tags name the
// members, a jsonschema tag describes one, omitempty makes it optional, and members
// without a field are refused.
//
// The schema's text never allows null, because some providers refuse such a union. Still,
// Validate accepts null for pointers and slices, because models write it to mean "none".
func For(t reflect.Type) (*Schema, error) {
	special := map[reflect.Type]*infer.Schema{}
	collectSpecial(t, special, map[reflect.Type]bool{})
	s, err := infer.ForType(t, &infer.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	forProviders(s)
	if s.Type != "object" {
		return nil, fmt.Errorf("%s is not a struct", t)
	}
	if s.Properties == nil {
		s.Properties = map[string]*infer.Schema{}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	lenient, err := infer.ForType(t, &infer.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	lenient.Type, lenient.Types = "object", nil
	doc, err := asDocument(lenient)
	if err != nil {
		return nil, err
	}
	compiled, err := compile(doc, newPatterns())
	if err != nil {
		return nil, err
	}
	return &Schema{raw: raw, compiled: compiled}, nil
}

// ForValues is the text of the schema that Validate uses of one that [For] has inferred: what Go writes
// of the type fits it, with null for nil pointers, slices and maps.
func ForValues(t reflect.Type) (json.RawMessage, error) {
	if _, err := For(t); err != nil {
		return nil, err
	}
	special := map[reflect.Type]*infer.Schema{}
	collectSpecial(t, special, map[reflect.Type]bool{})
	s, err := infer.ForType(t, &infer.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	s.Type, s.Types = "object", nil
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return raw, nil
}

func asDocument(s *infer.Schema) (any, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	doc, problems := decode(b)
	if len(problems) > 0 {
		return nil, problemsError(problems)
	}
	return doc, nil
}

// collectSpecial finds the types whose JSON differs from what their Go structure
// suggests.
func collectSpecial(t reflect.Type, special map[reflect.Type]*infer.Schema, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if s := specialSchema(t); s != nil {
		special[t] = s
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		collectSpecial(t.Elem(), special, seen)
	case reflect.Struct:
		for f := range t.Fields() {
			collectSpecial(f.Type, special, seen)
		}
	}
}

func specialSchema(t reflect.Type) *infer.Schema {
	reads := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &infer.Schema{Type: "string", Format: "date-time"}
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Interface:
		return nil
	case reads(reflect.TypeFor[json.Unmarshaler]()):
		return &infer.Schema{}
	case reads(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &infer.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &infer.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	}
	return nil
}

// forProviders changes a schema so that all providers accept it: no null in a union of
// types, and no true for a schema that allows anything.
func forProviders(s *infer.Schema) {
	if s == nil {
		return
	}
	// The slice may be shared with another schema.
	s.Types = slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	for _, p := range s.Properties {
		forProviders(p)
		if reflect.ValueOf(*p).IsZero() {
			p.Description = "any JSON value"
		}
	}
	forProviders(s.Items)
	forProviders(s.AdditionalProperties)
}
