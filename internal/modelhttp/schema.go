package modelhttp

// JSON Schemas as providers take them.

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Member is a member of an object. The order of members is kept: models read it.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of an object in their order.
func Members(raw json.RawMessage) ([]Member, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var list []Member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		text, ok := name.(string)
		if !ok || d.Decode(&value) != nil {
			return nil, false
		}
		list = append(list, Member{text, value})
	}
	_, err := d.Token()
	return list, err == nil
}

// Object writes an object.
func Object(list []Member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			continue // a text is always written
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// strictKeywords are what a schema may have that OpenAI's strict mode takes.
var strictKeywords = []string{
	"type",
	"properties",
	"required",
	"additionalProperties",
	"items",
	"enum",
	"const",
	"anyOf",
	"$ref",
	"$defs",
	"definitions",
	"title",
	"description",
	"pattern",
	"format",
	"minimum",
	"maximum",
	"exclusiveMinimum",
	"exclusiveMaximum",
	"multipleOf",
	"minItems",
	"maxItems",
}

// Strict reports whether OpenAI's strict mode takes a schema: each object lists all members
// that it may have, and requires them.
func Strict(schema json.RawMessage) bool {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	var properties map[string]json.RawMessage
	var required []string
	closed := string(bytes.TrimSpace(s["additionalProperties"])) == "false"
	if json.Unmarshal(cmpOr(s["properties"], "{}"), &properties) != nil ||
		json.Unmarshal(cmpOr(s["required"], "[]"), &required) != nil {
		return false
	}
	if object := bytes.Contains(s["type"], []byte(`"object"`)) ||
		len(properties) > 0; object && (!closed || len(properties) == 0) {
		return false
	}
	for name, sub := range properties {
		if !slices.Contains(required, name) || !Strict(sub) {
			return false
		}
	}
	for name, value := range s {
		if !slices.Contains(strictKeywords, name) {
			return false
		}
		var list []json.RawMessage
		var named map[string]json.RawMessage
		switch {
		case name == "items" && !Strict(value):
			return false
		case name == "anyOf" && (json.Unmarshal(value, &list) != nil || slices.ContainsFunc(list, loose)):
			return false
		case name != "$defs" && name != "definitions":
			continue
		case json.Unmarshal(value, &named) != nil:
			return false
		}
		for _, sub := range named {
			if !Strict(sub) {
				return false
			}
		}
	}
	return true
}

func loose(schema json.RawMessage) bool { return !Strict(schema) }

func cmpOr(raw json.RawMessage, otherwise string) json.RawMessage {
	if len(raw) > 0 {
		return raw
	}
	return json.RawMessage(otherwise)
}
