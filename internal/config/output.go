package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"go.yaml.in/yaml/v4"
)

// The form of an agent's answers: a JSON Schema, in the file or in one of its own.

// formParser reads the form of an agent's answers.
type formParser struct{ *parser }

// read returns the form; nil if it cannot be used.
func (p formParser) read(n *yaml.Node) *holdfast.Output {
	o := &holdfast.Output{Name: "answer"}
	before := len(p.mistakes)
	var inline, file *yaml.Node
	at := p.object(n, "output", fields{
		"name":        func(n *yaml.Node) { o.Name = p.outputName(n) },
		"description": func(n *yaml.Node) { o.Description, _ = p.text(n, "description") },
		"schema":      func(n *yaml.Node) { inline = n },
		"schemaFile":  func(n *yaml.Node) { file = n },
	})
	switch {
	case inline != nil && file != nil:
		p.mistake(later(at["schema"], at["schemaFile"]), "schema and schemaFile are both set; keep one")
	case inline != nil:
		o.Schema = p.inlineSchema(inline)
	case file != nil:
		o.Schema = p.schemaFile(file)
	case resolve(n).Kind == yaml.MappingNode:
		p.mistake(
			position(resolve(n)),
			"output has no schema; add schema: with a JSON Schema, or schemaFile: with the name of a file that has one",
		)
	}
	if len(p.mistakes) > before {
		return nil
	}
	return o
}

func (p formParser) outputName(n *yaml.Node) string {
	name, ok := p.text(n, "name")
	if !ok {
		return "answer"
	}
	for _, m := range schema.OutputMistakes(name, json.RawMessage(`{"type":"object"}`)) {
		p.mistake(position(resolve(n)), "%s", m.Text)
	}
	return name
}

// inlineSchema reads a schema that is in the file. A mistake in it is reported at its place.
func (p formParser) inlineSchema(n *yaml.Node) json.RawMessage {
	before := len(p.mistakes)
	raw := p.ordered(n, "schema")
	if len(p.mistakes) > before {
		return nil
	}
	for _, m := range schema.OutputMistakes("answer", raw) {
		p.mistake(position(nodeAt(resolve(n), m.Path)), "%s", m.Text)
	}
	return raw
}

// schemaFile reads a schema from a JSON file.
func (p formParser) schemaFile(n *yaml.Node) json.RawMessage {
	path, ok := p.text(n, "schemaFile")
	if !ok {
		return nil
	}
	at, shown := position(resolve(n)), show(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.name), path)
	}
	data, err := p.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.mistake(at, "there is no file %s; the path is relative to this file", shown)
	case err != nil:
		p.mistake(at, "schemaFile cannot be read: %v", err)
	case len(data) > MaxSize:
		p.mistake(at, "the file %s is larger than 1 MiB; the schema is sent with every model call", shown)
	default:
		for _, m := range schema.OutputMistakes("answer", data) {
			p.mistake(at, "the file %s: %s", shown, m)
		}
		return data
	}
	return nil
}

// ordered returns a value as JSON whose members have the order of the file: models write
// their answers in the order of the schema.
func (p formParser) ordered(n *yaml.Node, what string) json.RawMessage {
	var b bytes.Buffer
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		p.entries(n, what, func(key string, _ place, value *yaml.Node) {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(text(key))
			b.WriteByte(':')
			b.Write(p.ordered(value, member(what, key)))
		})
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		p.list(n, what, func(value *yaml.Node) {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(p.ordered(value, what))
		})
		b.WriteByte(']')
	default:
		b.Write(text(p.free(n, what)))
	}
	return b.Bytes()
}

// text returns a scalar as JSON.
func text(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // p.free has found it to be one
		return []byte("null")
	}
	return raw
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
