package config

// The file's JSON Schema: which keys there are, what each may be, and which words are known.

import (
	"bytes"
	_ "embed" // the schema
	"encoding/json"
)

//go:embed holdfast.schema.json
var schemaText []byte

// Schema returns the JSON Schema of the file, for editors.
func Schema() []byte { return bytes.Clone(schemaText) }

// shape is a part of the schema, as far as values are read by it.
type shape struct {
	Title      string            `json:"title"`
	Ref        string            `json:"$ref"`
	Enum       []string          `json:"enum"`
	Properties map[string]*shape `json:"properties"`
	Others     others            `json:"additionalProperties"`
	Items      *shape            `json:"items"`
	AnyOf      []*shape          `json:"anyOf"`
	Defs       map[string]*shape `json:"$defs"`
}

// others is the shape of the values of a mapping whose keys are names; nil if it has none.
type others struct{ *shape }

// UnmarshalJSON implements [json.Unmarshaler].
func (o *others) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &o.shape)
}

// readSchema returns what the file is read by.
func readSchema() *shape {
	s := &shape{}
	if err := json.Unmarshal(schemaText, s); err != nil {
		panic("the schema of the file: " + err.Error()) // it is compiled in
	}
	return s
}
