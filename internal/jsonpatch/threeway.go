package jsonpatch

import (
	"bytes"
	"encoding/json"
)

// Conflict is a place of a document that two have changed in different ways.
type Conflict struct {
	Path string `json:"path"` // a JSON Pointer
	// Yours and Theirs are the two values; nothing for one who has removed it.
	Yours  json.RawMessage `json:"yours,omitempty"`
	Theirs json.RawMessage `json:"theirs,omitempty"`
}

// ThreeWay merges two documents that were made of the same one: member by member, as far as all of them have
// objects there. A place that only one has changed is as that one has it. If both have changed it in different
// ways, that is a conflict, and the place is as yours has it if preferYours is set.
func ThreeWay(base, theirs, yours []byte, preferYours bool) (merged []byte, conflicts []Conflict, err error) {
	m := merging{preferYours: preferYours}
	v, err := m.value(asValue(base), asValue(theirs), asValue(yours))
	if err != nil {
		return nil, nil, err
	}
	return v.append(make([]byte, 0, len(theirs)+len(yours))), m.conflicts, nil
}

// merging is a merge under way.
type merging struct {
	preferYours bool
	path        []byte
	conflicts   []Conflict
}

func asValue(doc []byte) *value { return &value{raw: bytes.TrimSpace(doc)} }

// value merges the values at a place; nil stands for none.
func (m *merging) value(base, theirs, yours *value) (*value, error) {
	switch {
	case equalTexts(yours, base), equalTexts(yours, theirs):
		return theirs, nil
	case equalTexts(theirs, base):
		return yours, nil
	}
	if isObject(theirs) && isObject(yours) {
		if !isObject(base) {
			base = &value{raw: []byte("{}")}
		}
		return m.object(base, theirs, yours)
	}
	m.conflicts = append(m.conflicts, Conflict{string(m.path), textOf(yours), textOf(theirs)})
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
	merged := &value{kind: '{'}
	each := func(of member) error {
		back := len(m.path)
		m.path = appendName(append(m.path, '/'), of.name)
		v, err := m.value(base.at(of.name), theirs.at(of.name), yours.at(of.name))
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
		if theirs.member(of.name) < 0 {
			if err := each(of); err != nil {
				return nil, err
			}
		}
	}
	return merged, nil
}

// at returns a member of an object that was taken apart; nil if it has none of that name.
func (v *value) at(name string) *value {
	if i := v.member(name); i >= 0 {
		return v.members[i].value
	}
	return nil
}

// isObject reports whether a value is an object.
func isObject(v *value) bool {
	return v != nil && (v.kind == '{' || v.kind == 0 && len(v.raw) > 0 && v.raw[0] == '{')
}

// textOf returns the text of a value; nil for none.
func textOf(v *value) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.append(nil)
}

// equalTexts reports whether two values are equal.
func equalTexts(a, b *value) bool {
	if a == nil || b == nil {
		return a == b
	}
	return Equal(a.append(nil), b.append(nil))
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
