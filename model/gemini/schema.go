package gemini

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// keywords are those of JSON Schema that the API takes. The server checks arguments
// against the whole schema, so that a keyword less for the model lets nothing through.
var keywords = []string{
	"$anchor",
	"$defs",
	"$id",
	"$ref",
	"additionalProperties",
	"anyOf",
	"description",
	"enum",
	"format",
	"items",
	"maxItems",
	"maximum",
	"minItems",
	"minimum",
	"oneOf",
	"prefixItems",
	"properties",
	"propertyOrdering",
	"required",
	"title",
	"type",
}

// subset returns a schema without the keywords that the API does not take. A value that is not
// a JSON object is returned as it is.
func subset(schema json.RawMessage) json.RawMessage {
	list, ok := modelhttp.Members(schema)
	if !ok {
		return schema
	}
	kept := list[:0]
	for _, m := range list {
		if m.Name == "definitions" {
			m.Name = "$defs"
		}
		switch {
		case m.Name == "$ref":
			m.Value = bytes.Replace(m.Value, []byte(`"#/definitions/`), []byte(`"#/$defs/`), 1)
		case m.Name == "const":
			m = modelhttp.Member{
				Name:  "enum",
				Value: slices.Concat(json.RawMessage("["), m.Value, json.RawMessage("]")),
			}
		case !slices.Contains(keywords, m.Name):
			continue
		case m.Name == "properties" || m.Name == "$defs":
			m.Value = each(m.Value)
		case m.Name == "anyOf" || m.Name == "oneOf" || m.Name == "prefixItems":
			m.Value = eachOf(m.Value)
		case m.Name == "items" || m.Name == "additionalProperties":
			m.Value = subset(m.Value)
		}
		kept = append(kept, m)
	}
	return modelhttp.Object(kept)
}

// each takes the subset of each schema in an object of them.
func each(schemas json.RawMessage) json.RawMessage {
	list, ok := modelhttp.Members(schemas)
	if !ok {
		return schemas
	}
	for i := range list {
		list[i].Value = subset(list[i].Value)
	}
	return modelhttp.Object(list)
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
