package config

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Reading a declaration by the schema. Values that are more than JSON can say have a reader by
// the name of their definition.

// declaring reads one declaration.
type declaring struct {
	p     *parser
	d     *Declaration
	short bool // mistakes name the last key of a path only

	readers map[string]reader // of values that are more than JSON can say
}

// reader reads a value. what is its path in the declaration. Without a value it returns nil.
type reader func(r declaring, n *yaml.Node, what string) any

// newDeclaring begins a declaration.
func newDeclaring(p *parser, kind string, at place) declaring {
	return declaring{p: p, readers: readers(), d: &Declaration{
		Kind:   kind,
		file:   p.file,
		start:  at,
		at:     map[string]place{},
		values: map[string]any{},
	}}
}

// each reads a list.
func each(read reader) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		all := []any{}
		r.p.list(n, what, func(n *yaml.Node) {
			at := item(what, len(all))
			r.d.at[at] = position(n)
			all = append(all, read(r, n, at))
		})
		return all
	}
}

// mapped reads a mapping whose keys are names.
func mapped(read reader) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		all := map[string]any{}
		r.p.entries(n, what, func(key string, _ place, value *yaml.Node) {
			at := join(what, key)
			r.d.at[at] = position(resolve(value))
			if v := read(r, value, member(what, key)); v != nil {
				all[key] = v
			}
		})
		return all
	}
}

// readers are by the names of definitions in the schema.
func readers() map[string]reader {
	return map[string]reader{
		"text":            plain,
		"toolName":        toolName,
		"value":           with(plainText),
		"address":         with(addressText),
		"path":            with(pathText),
		"template":        with(template),
		"baseURL":         (declaring).baseURL,
		"modelProxy":      (declaring).modelProxy,
		"variable":        (declaring).apiKeyEnv,
		"secret":          secretText,
		"headers":         headersAs(plainText),
		"headerTemplates": headersAs(template),
		"environment":     environment,
		"credential":      credential,
		"command":         command,
		"pointer":         pointer,
		"operationName":   operationName,
		"document":        document,
		"jsonSchema":      schemaHere,
		"parametersFile":  schemaIn("parameters"),
		"resultFile":      schemaIn("result"),
		"params":          params,
		"anything":        anything,
		"duration":        duration,
		"size":            size,
		"largeSize":       largeSize,
		"count":           count,
	}
}

// read reads a value of a shape. what is its path. Without a value it returns nil.
func (r declaring) read(s *shape, n *yaml.Node, what string) any {
	name := strings.TrimPrefix(s.Ref, "#/$defs/")
	switch read := r.readers[name]; {
	case read != nil:
		return read(r, n, what)
	case s.Ref != "":
		return r.read(r.p.def(name), n, what)
	case s.AnyOf != nil && n.Kind == yaml.ScalarNode:
		return r.read(s.AnyOf[0], n, what)
	case s.AnyOf != nil:
		return r.read(s.AnyOf[len(s.AnyOf)-1], n, what)
	case s.Enum != nil:
		return r.p.oneOf(n, what, s.Enum)
	case s.Properties != nil:
		values := map[string]any{}
		r.p.object(n, cmp.Or(s.Title, what), r.members(s, values, what))
		return values
	case s.Others.shape != nil:
		return mapped(s.Others.reader())(r, n, what)
	case s.Items != nil:
		return each(s.Items.reader())(r, n, what)
	}
	return r.p.yes(n, what)
}

func (s *shape) reader() reader {
	return func(r declaring, n *yaml.Node, what string) any { return r.read(s, n, what) }
}

// members returns the fields that put the values of a mapping's keys into values.
func (r declaring) members(s *shape, values map[string]any, path string) fields {
	known := fields{}
	for key, member := range s.Properties {
		what := join(path, key)
		if r.short {
			what = key
		}
		known[key] = func(n *yaml.Node) {
			r.d.at[what] = position(resolve(n))
			if v := r.read(member, n, what); v != nil {
				values[key] = v
			}
		}
	}
	return known
}
