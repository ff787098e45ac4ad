package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// scope is what $dynamicRef and $recursiveRef depend on: which schemas with an anchor for
// them were entered on the way, the outermost first. Equal scopes are the same pointer.
type scope struct {
	parent *scope
	anchor string
	schema *jsonschema.Schema
}

// nameless stands for $recursiveAnchor, which has no name; a name has no space.
const nameless = " recursive"

// enter returns the scope inside of a schema. An anchor that is there already stays what it
// is: the outermost counts.
func (c *check) enter(in *scope, s *jsonschema.Schema) *scope {
	if s.DynamicAnchor != "" {
		in = c.with(in, s.DynamicAnchor, s)
	}
	if s.RecursiveAnchor {
		in = c.with(in, nameless, s)
	}
	return in
}

func (c *check) with(in *scope, anchor string, s *jsonschema.Schema) *scope {
	if c.lookUp(in, anchor) != nil {
		return in
	}
	inner := scope{in, anchor, s}
	known := c.scopes[inner]
	if known == nil {
		known = &inner
		c.scopes[inner] = known
	}
	return known
}

// lookUp returns the schema that an anchor stands for; nil if it was not entered.
func (c *check) lookUp(in *scope, anchor string) *jsonschema.Schema {
	for ; in != nil; in = in.parent {
		c.step(1)
		if in.anchor == anchor {
			return in.schema
		}
	}
	return nil
}

// dynamic returns what a $dynamicRef leads to.
func (c *check) dynamic(in *scope, ref *jsonschema.DynamicRef) *jsonschema.Schema {
	if ref.Anchor != "" && ref.Ref.DynamicAnchor == ref.Anchor {
		if s := c.lookUp(in, ref.Anchor); s != nil {
			return s
		}
	}
	return ref.Ref
}

// recursive returns what a $recursiveRef leads to.
func (c *check) recursive(in *scope, target *jsonschema.Schema) *jsonschema.Schema {
	if target.RecursiveAnchor {
		if s := c.lookUp(in, nameless); s != nil {
			return s
		}
	}
	return target
}
