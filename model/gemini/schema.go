package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
)

// keywords are those of JSON Schema that the API takes. The server checks arguments
// against the whole schema, so that a keyword less for the model lets nothing through.
var keywords = []string{
	"$anchor", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum", "format", "items", "maxItems", "maximum",
	"minItems", "minimum", "oneOf", "prefixItems", "properties", "propertyOrdering", "required", "title", "type",
}

// member is a member of an object. The order of members is kept: models read it.
type member struct {
	name  string
	value json.RawMessage
}

// subset returns a schema without the keywords that the API does not take. What is not a
// JSON object is returned as it is.
func subset(schema json.RawMessage) json.RawMessage {
	list, ok := members(schema)
	if !ok {
		return schema
	}
	kept := list[:0]
	for _, m := range list {
		if m.name == "definitions" {
			m.name = "$defs"
		}
		switch {
		case m.name == "$ref":
			m.value = bytes.Replace(m.value, []byte(`"#/definitions/`), []byte(`"#/$defs/`), 1)
		case m.name == "const":
			m = member{"enum", slices.Concat(json.RawMessage("["), m.value, json.RawMessage("]"))}
		case !slices.Contains(keywords, m.name):
			continue
		case m.name == "properties" || m.name == "$defs":
			m.value = each(m.value)
		case m.name == "anyOf" || m.name == "oneOf" || m.name == "prefixItems":
			m.value = eachOf(m.value)
		case m.name == "items" || m.name == "additionalProperties":
			m.value = subset(m.value)
		}
		kept = append(kept, m)
	}
	return object(kept)
}

// each takes the subset of each schema in an object of them.
func each(schemas json.RawMessage) json.RawMessage {
	list, ok := members(schemas)
	if !ok {
		return schemas
	}
	for i := range list {
		list[i].value = subset(list[i].value)
	}
	return object(list)
}

// eachOf takes the subset of each schema in a list of them.
func eachOf(schemas json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(schemas, &list) != nil {
		return schemas
	}
	for i := range list {
		list[i] = subset(list[i])
	}
	return slices.Concat(json.RawMessage("["), bytes.Join(asBytes(list), []byte(",")), json.RawMessage("]"))
}

func asBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

// members returns the members of an object in their order.
func members(raw json.RawMessage) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var list []member
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
		list = append(list, member{text, value})
	}
	_, err := d.Token()
	return list, err == nil
}

// object writes an object.
func object(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			continue // a text is always written
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
