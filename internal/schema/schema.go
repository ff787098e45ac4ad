// Package schema turns Go types into JSON Schema and checks JSON against a schema, with
// messages that a model can act on. It is a leaf: it imports nothing from Holdfast.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	raw      json.RawMessage
	compiled *jsonschema.Schema
}

// JSON returns the schema's text. The caller must not change it.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Compile reads a schema from JSON. It refuses references to other documents, so that a
// schema can never make the server fetch something. A pattern that Go's regexp package
// does not understand is not enforced: schemas come from frontends and tool servers that
// use JavaScript's regular expressions.
func Compile(raw json.RawMessage) (*Schema, error) {
	doc, problems := decode(raw)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the schema cannot be read: %w", problemsError(problems))
	}
	stripPatterns(doc)
	compiled, err := compile(doc)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	return &Schema{raw: b.Bytes(), compiled: compiled}, nil
}

// location is the URL of compiled schemas; only messages of the library show it.
const location = "holdfast:///schema"

func compile(doc any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	s, err := c.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	return s, nil
}

// noLoader refuses to load anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not followed")
}
