package httptool

// The schemas of an OpenAPI document as JSON Schema: references are replaced by what they
// mean, because not every model's provider follows them, and the words of OpenAPI 3.0 by
// those of JSON Schema.

import "slices"

// maxSchema is how many schemas one parameter may consist of.
const maxSchema = 2000

// converter turns one schema of a document into JSON Schema.
type converter struct {
	open  []string // the references that are being replaced
	count int
}

// keywords of JSON Schema, by what their values are.
var keywords = struct{ plain, schema, list, object []string }{
	plain: []string{
		"type",
		"enum",
		"const",
		"default",
		"title",
		"description",
		"format",
		"pattern",
		"minimum",
		"maximum",
		"exclusiveMinimum",
		"exclusiveMaximum",
		"multipleOf",
		"minLength",
		"maxLength",
		"minItems",
		"maxItems",
		"uniqueItems",
		"minContains",
		"maxContains",
		"minProperties",
		"maxProperties",
		"required",
		"dependentRequired",
		"examples",
		"contentEncoding",
		"contentMediaType",
	},
	schema: []string{
		"items",
		"additionalProperties",
		"not",
		"if",
		"then",
		"else",
		"contains",
		"propertyNames",
		"unevaluatedItems",
		"unevaluatedProperties",
	},
	list:   []string{"allOf", "anyOf", "oneOf", "prefixItems"},
	object: []string{"properties", "patternProperties", "dependentSchemas"},
}

// schemaOf returns a schema as JSON Schema.
func schemaOf(p place) (map[string]any, error) {
	s, err := new(converter).convert(p)
	if err != nil {
		return nil, err
	}
	if object, ok := s.(map[string]any); ok {
		return object, nil
	}
	return map[string]any{}, nil // true, or nothing
}

func (c *converter) convert(p place) (any, error) {
	if c.count++; c.count > maxSchema {
		return nil, p.errorf("the schema consists of more than %d others", maxSchema)
	}
	if b, ok := p.value.(bool); ok {
		return b, nil
	}
	if p.value == nil {
		return map[string]any{}, nil
	}
	if p.object() == nil {
		return nil, p.errorf("a schema must be an object")
	}
	if ref, ok := p.get("$ref").value.(string); ok {
		return c.reference(p, ref)
	}
	s := map[string]any{}
	for _, name := range keywords.plain {
		if v := p.object()[name]; v != nil {
			s[name] = v
		}
	}
	if err := c.nested(p, s); err != nil {
		return nil, err
	}
	withoutReadOnly(p, s)
	if p.doc.old {
		fromOld(p, s)
	}
	return s, nil
}

// reference returns what a reference means, with what stands beside it. A schema within
// itself is any value there: a model that needs more levels is told by its description.
func (c *converter) reference(p place, ref string) (any, error) {
	if slices.Contains(c.open, ref) {
		return map[string]any{"description": "as " + ref[lastSlash(ref):] + " above"}, nil
	}
	target, err := p.doc.find(ref)
	if err != nil {
		return nil, p.errorf("%w", err)
	}
	c.open = append(c.open, ref)
	found, err := c.convert(target)
	c.open = c.open[:len(c.open)-1]
	s, ok := found.(map[string]any)
	if err != nil || !ok || p.doc.old { // in 3.0 nothing may stand beside a reference
		return found, err
	}
	for _, name := range []string{"description", "title", "default"} {
		if v := p.object()[name]; v != nil {
			s[name] = v
		}
	}
	return s, nil
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i + 1
		}
	}
	return 0
}

// nested converts the schemas in a schema.
func (c *converter) nested(p place, s map[string]any) error {
	for _, name := range keywords.schema {
		if p.object()[name] == nil {
			continue
		}
		v, err := c.convert(p.get(name))
		if err != nil {
			return err
		}
		s[name] = v
	}
	for _, name := range keywords.list {
		items := p.get(name).items()
		if len(items) == 0 {
			continue
		}
		list := make([]any, len(items))
		for i, item := range items {
			v, err := c.convert(item)
			if err != nil {
				return err
			}
			list[i] = v
		}
		s[name] = list
	}
	for _, name := range keywords.object {
		members := p.get(name)
		if members.object() == nil {
			continue
		}
		object := map[string]any{}
		for key := range members.object() {
			v, err := c.convert(members.get(key))
			if err != nil {
				return err
			}
			object[key] = v
		}
		s[name] = object
	}
	return nil
}

// withoutReadOnly leaves out the members that only answers have.
func withoutReadOnly(p place, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for name := range properties {
		member, err := p.get("properties").get(name).resolve()
		if err != nil || !member.yes("readOnly") {
			continue
		}
		delete(properties, name)
		if required, ok := s["required"].([]any); ok {
			s["required"] = slices.DeleteFunc(slices.Clone(required), func(r any) bool { return r == name })
		}
	}
}

// fromOld replaces what OpenAPI 3.0 writes in another way.
func fromOld(p place, s map[string]any) {
	for name, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if _, is := s[name].(bool); !is {
			continue
		}
		if s[name] == true && s[limit] != nil {
			s[name] = s[limit]
			delete(s, limit)
		} else {
			delete(s, name)
		}
	}
	if !p.yes("nullable") {
		return
	}
	if kind, ok := s["type"].(string); ok {
		s["type"] = []any{kind, "null"}
	}
	if values, ok := s["enum"].([]any); ok && !slices.Contains(values, nil) {
		s["enum"] = append(slices.Clone(values), nil)
	}
}

// kindOf returns the type of a schema; empty if it has none or several.
func kindOf(s map[string]any) string {
	switch kind := s["type"].(type) {
	case string:
		return kind
	case []any:
		kinds := slices.DeleteFunc(slices.Clone(kind), func(k any) bool { return k == "null" })
		if len(kinds) == 1 {
			one, _ := kinds[0].(string)
			return one
		}
	}
	return ""
}
