package jsonpatch

import (
	"bytes"
	"encoding/json"
)

// Two who have changed copies of one document, and what comes of both changes.

// Conflict is a place of a document that two have changed in different ways.
type Conflict struct {
	Path string `json:"path"` // a JSON Pointer
	// Yours and Theirs are the two values; nil for one who has removed it.
	Yours  json.RawMessage `json:"yours,omitempty"`
	Theirs json.RawMessage `json:"theirs,omitempty"`
}

// Merged is what came of merging two documents.
type Merged struct {
	Doc []byte // nil for none
	// Conflicts are the first places that both have changed in different ways, and Count says
	// how many there are.
	Conflicts []Conflict
	Count     int
}

// maxConflicts is how many conflicts are told: the paths of a deep document may be long.
const maxConflicts = 32

// ThreeWay merges two documents that were made of the same one: member by member, as far as both of them have
// objects there. A place that only one has changed is as that one has it. If both have changed it in different
// ways, that is a conflict, and the place is as yours has it if preferYours is set.
//
// Yours has gone through a reader that knows only floating-point numbers, and writes numbers and texts in its
// own way. A difference that such a reader does not see is no change.
func ThreeWay(base, theirs, yours []byte, preferYours bool) (Merged, error) {
	m := merging{preferYours: preferYours}
	v, err := m.value(asValue(base), asValue(theirs), asValue(yours))
	if err != nil {
		return Merged{}, err
	}
	if v != nil {
		m.Doc = v.append(make([]byte, 0, len(theirs)+len(yours)))
	}
	return m.Merged, nil
}

// merging is a merge under way. It goes through each part of the documents a few times at most.
type merging struct {
	Merged
	preferYours bool
	path        []byte
}

// asValue returns a document as a value; nil if it is empty.
func asValue(doc []byte) *value {
	if doc = bytes.TrimSpace(doc); len(doc) > 0 {
		return &value{raw: doc}
	}
	return nil
}

// value merges the values at a place; nil stands for none.
func (m *merging) value(base, theirs, yours *value) (*value, error) {
	if isObject(theirs) && isObject(yours) {
		if !isObject(base) {
			base = &value{raw: []byte("{}")}
		}
		return m.object(base, theirs, yours)
	}
	for _, c := range []struct{ a, b, then *value }{
		{yours, base, theirs}, {yours, theirs, theirs}, {theirs, base, yours},
	} {
		if same, err := alike(c.a, c.b); same || err != nil {
			return c.then, err
		}
	}
	if m.Count++; m.Count <= maxConflicts {
		m.Conflicts = append(m.Conflicts, Conflict{string(m.path), textOf(yours), textOf(theirs)})
	}
	if m.preferYours {
		return yours, nil
	}
	return theirs, nil
}

// object merges objects.
func (m *merging) object(base, theirs, yours *value) (*value, error) {
	for _, v := range []*value{base, theirs, yours} {
		if err := v.open(); err != nil {
			return nil, err
		}
	}
	inBase, inTheirs, inYours := base.byName(), theirs.byName(), yours.byName()
	merged := &value{kind: '{'}
	each := func(of member) error {
		back := len(m.path)
		m.path = appendName(append(m.path, '/'), of.name)
		v, err := m.value(inBase(of.name), inTheirs(of.name), inYours(of.name))
		m.path = m.path[:back]
		if v != nil {
			merged.members = append(merged.members, member{of.name, of.text, v})
		}
		return err
	}
	for _, of := range theirs.members {
		if err := each(of); err != nil {
			return nil, err
		}
	}
	for _, of := range yours.members {
		if inTheirs(of.name) == nil {
			if err := each(of); err != nil {
				return nil, err
			}
		}
	}
	return merged, nil
}

// isObject reports whether a value is an object.
func isObject(v *value) bool {
	return v != nil && (v.kind == '{' || v.kind == 0 && v.raw[0] == '{')
}

// textOf returns the text of a value; nil for none.
func textOf(v *value) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.append(nil)
}

// Equal reports whether two documents mean the same, with numbers and texts as they are written.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	patch, err := Diff(a, b)
	return err == nil && string(patch) == None
}

// appendName appends a name as JSON Pointers have it.
func appendName(to []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; c {
		case '~':
			to = append(to, "~0"...)
		case '/':
			to = append(to, "~1"...)
		default:
			to = append(to, c)
		}
	}
	return to
}
