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
	raw         json.RawMessage
	compiled    *jsonschema.Schema
	unevaluated bool // it asks for what else was evaluated
}

// JSON returns the schema's text. The caller must not change it.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Compile reads a schema from JSON. It refuses references to other documents, so that a
// schema can never make the server fetch something. A pattern that Go's regexp package
// does not understand is not enforced: schemas come from frontends and tool servers that
// use JavaScript's regular expressions. The error is a [*BoundError] if the schema takes too
// long to read.
func Compile(raw json.RawMessage) (*Schema, error) {
	if err := sizeBounded(raw); err != nil {
		return nil, err
	}
	doc, problems := decode(raw)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the schema cannot be read: %w", problemsError(problems))
	}
	compiled, err := compileBounded(doc)
	if err != nil {
		return nil, unusable(err, doc)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	// A text that only looks like the keyword costs a little time.
	unevaluated := bytes.Contains(raw, []byte("unevaluated")) || bytes.Contains(raw, []byte(`\u`))
	return &Schema{raw: b.Bytes(), compiled: compiled, unevaluated: unevaluated}, nil
}

// location is the URL of compiled schemas; only messages of the library show it.
const location = "holdfast:///schema"

// compileBounded compiles a schema from elsewhere, unless that takes too long.
func compileBounded(doc any) (*jsonschema.Schema, error) {
	known := newPatterns()
	if err := known.strip(doc); err != nil {
		return nil, err
	}
	if err := bounded(doc, known); err != nil {
		return nil, err
	}
	return compile(doc, known)
}

func compile(doc any, known *patterns) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(known.engine)
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

// noLoader refuses to load anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not followed")
}
