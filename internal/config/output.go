package config

import (
	"encoding/json"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"go.yaml.in/yaml/v4"
)

// The form of an agent's answers: a JSON Schema, in the file or in one of its own.

// output returns the form; nil if it cannot be used.
func (r *agentReader) output(n *yaml.Node) *holdfast.Output {
	o := &holdfast.Output{Name: "answer"}
	before := len(r.p.found)
	var inline, file *yaml.Node
	at := r.p.object(n, "output", fields{
		"name":        func(n *yaml.Node) { o.Name = r.outputName(n) },
		"description": func(n *yaml.Node) { o.Description, _ = r.p.text(n, "description") },
		"schema":      func(n *yaml.Node) { inline = n },
		"schemaFile":  func(n *yaml.Node) { file = n },
	})
	switch {
	case inline != nil && file != nil:
		r.p.mistake(later(at["schema"], at["schemaFile"]), "schema and schemaFile are both set; keep one")
	case inline != nil:
		o.Schema = r.inlineSchema(inline)
	case file != nil:
		o.Schema = r.schemaFile(file)
	case resolve(n).Kind == yaml.MappingNode:
		r.p.mistake(position(resolve(n)),
			"output has no schema; add schema: with a JSON Schema, or schemaFile: with the name of a file that has one")
	}
	if len(r.p.found) > before {
		return nil
	}
	return o
}

func (r *agentReader) outputName(n *yaml.Node) string {
	name, ok := r.p.text(n, "name")
	if !ok {
		return "answer"
	}
	for _, m := range schema.OutputMistakes(name, json.RawMessage(`{"type":"object"}`)) {
		r.p.mistake(position(resolve(n)), "%s", m.Text)
	}
	return name
}

// inlineSchema reads a schema that is in the file. A mistake in it is reported at its place.
func (r *agentReader) inlineSchema(n *yaml.Node) json.RawMessage {
	before := len(r.p.found)
	raw := r.p.ordered(n, "schema")
	if len(r.p.found) > before {
		return nil
	}
	for _, m := range schema.OutputMistakes("answer", raw) {
		r.p.mistake(position(nodeAt(resolve(n), m.Path)), "%s", m.Text)
	}
	return raw
}

// schemaFile reads a schema from a JSON file.
func (r *agentReader) schemaFile(n *yaml.Node) json.RawMessage {
	_, data, ok := r.p.besideFile(n, "schemaFile", MaxSize, "; the schema is sent with every model call")
	if !ok {
		return nil
	}
	for _, m := range schema.OutputMistakes("answer", data) {
		r.p.mistake(position(resolve(n)), "the file %s: %s", show(resolve(n).Value), m)
	}
	return data
}

// nodeAt returns the value at a path within a node, or the last one on the way to it that
// is there.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, name := range path {
		next := n
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if resolve(n.Content[i]).Value == name {
					next = resolve(n.Content[i+1])
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
				next = resolve(n.Content[i])
			}
		}
		if next == n {
			return n
		}
		n = next
	}
	return n
}
