package config

// Reading an agent's list of middleware: it is made while the file is read, so that a
// mistake in its options is reported with its line and column.

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"go.yaml.in/yaml/v4"
)

// middleware reads an agent's list. Each entry is the name of a kind, or a mapping
// from the name to its options, which are returned as JSON.
func (r *agentReader) middleware(n *yaml.Node) (all []holdfast.Middleware, options []json.RawMessage) {
	r.p.list(n, "middleware", func(n *yaml.Node) {
		name, given := n, (*yaml.Node)(nil)
		switch {
		case n.Kind == yaml.ScalarNode:
		case n.Kind != yaml.MappingNode || len(n.Content) == 0:
			r.p.wrongType(n, "a middleware", "a name (- name), or a name and its options (- name: {key: value})")
			return
		case len(n.Content) > 2:
			r.p.mistake(position(n.Content[2]),
				"%s is next to %s; indent options further than the name, and start another middleware with a dash",
				show(resolve(n.Content[2]).Value), show(resolve(n.Content[0]).Value))
			return
		default:
			name, given = n.Content[0], n.Content[1]
		}
		if m, raw, ok := r.made(name, given); ok {
			all, options = append(all, m), append(options, raw)
		}
	})
	return all, options
}

// made makes a middleware. options is nil if there are none.
func (r *agentReader) made(at, options *yaml.Node) (m holdfast.Middleware, raw json.RawMessage, ok bool) {
	name, ok := r.p.text(at, "a middleware")
	if !ok {
		return m, nil, false
	}
	i := slices.IndexFunc(r.known.Middleware, func(k holdfast.MiddlewareKind) bool { return k.Name == name })
	if i < 0 {
		var names []string
		for _, k := range r.known.Middleware {
			names = append(names, k.Name)
		}
		r.p.mistake(position(at), "unknown middleware %s%s", show(name), suggest(name, names))
		return m, nil, false
	}
	if raw, ok = r.options(name, options); !ok {
		return m, nil, false
	}
	m, err := r.known.Middleware[i].New(raw)
	if err != nil {
		if options == nil || resolve(options).ShortTag() == "!!null" {
			options = at
		}
		r.p.badOptions(name, options, err)
		return m, nil, false
	}
	return m, raw, true
}

// options returns the options of a middleware as a JSON object. It adds the file's
// prices for kinds that use them.
func (r *agentReader) options(name string, n *yaml.Node) (raw json.RawMessage, ok bool) {
	values := map[string]any{}
	if n != nil && resolve(n).ShortTag() != "!!null" {
		if resolve(n).Kind != yaml.MappingNode {
			r.p.wrongType(resolve(n), "the options of "+name, "a mapping (key: value)")
			return nil, false
		}
		before := len(r.p.found)
		values, _ = r.p.free(n, name).(map[string]any)
		if len(r.p.found) > before {
			return nil, false
		}
	}
	if _, own := values["prices"]; !own && len(r.prices) > 0 && slices.Contains(r.known.Priced, name) {
		values["prices"] = r.prices
	}
	raw, err := json.Marshal(values)
	if err != nil {
		r.p.mistake(position(n), "the options of %s cannot be written as JSON: %v", name, err)
	}
	return raw, err == nil
}

// prices reads what models cost. It leaves out prices with mistakes; wrong says what is one.
func (p *parser) prices(n *yaml.Node, wrong func(price json.RawMessage) error) map[string]any {
	prices := map[string]any{}
	p.entries(n, "prices", func(model string, _ place, value *yaml.Node) {
		what := "the price of " + show(model)
		if resolve(value).Kind != yaml.MappingNode {
			p.wrongType(resolve(value), what, "a mapping, like {input: 0.25, output: 2}")
			return
		}
		before := len(p.found)
		price := p.free(value, what)
		if len(p.found) > before {
			return
		}
		raw, err := json.Marshal(price)
		if err == nil && wrong != nil {
			err = wrong(raw)
		}
		if err != nil {
			p.badOptions(what, value, err)
			return
		}
		prices[model] = price
	})
	return prices
}

// unknownField matches how encoding/json reports a member that a struct does not have,
// for which it has no error type.
var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// badOptions reports what a kind said about its options, with the exact place if it
// can be found.
func (p *parser) badOptions(what string, options *yaml.Node, err error) {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		if _, value := find(options, name); value != nil {
			p.mistake(position(value), "%s: %s must be %s, not %s", what, name, wanted(wrong.Type), given(wrong.Value))
			return
		}
	}
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		if key, _ := find(options, m[1]); key != nil {
			p.mistake(position(key), "%s has no option %s", what, show(m[1]))
			return
		}
	}
	p.mistake(position(options), "%s: %v", what, err)
}

// find returns the first member of that name, at any depth, ignoring case as
// encoding/json does.
func find(n *yaml.Node, name string) (key, value *yaml.Node) {
	n = resolve(n)
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if strings.EqualFold(resolve(c).Value, name) {
				return c, n.Content[i+1]
			}
			continue
		}
		if key, value = find(c, name); key != nil {
			return key, value
		}
	}
	return nil, nil
}

// wanted names a type in terms of the file.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		if t.Name() == "Duration" {
			return "a duration with its unit, like 30s or 2m"
		}
		return "text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping (key: value)"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// given names a JSON value, for example "number 1.5".
func given(value string) string {
	kind, text, _ := strings.Cut(value, " ")
	switch kind {
	case "object":
		return "a mapping (key: value)"
	case "array":
		return "a list"
	case "string":
		return "text"
	case "bool":
		return "true or false"
	}
	switch {
	case text == "":
		return "a " + kind
	case strings.Trim(text, "0123456789") == "":
		return show(text) + ", which is too large"
	}
	return show(text)
}
