package jsonpatch

import (
	"bytes"
	"strconv"
)

// Documents that have gone through a page come back in the words of JavaScript: 2.0 is written as 2, an
// escape as the character, and of a number with more digits than it can tell apart only some are left.

// Alike reports whether a reader that knows only floating-point numbers takes two documents for the same.
func Alike(a, b []byte) bool {
	same, err := alike(asValue(a), asValue(b))
	return same && err == nil
}

// alike is Alike for values, which it takes apart; nil stands for none.
func alike(a, b *value) (bool, error) {
	if a == nil || b == nil {
		return a == b, nil
	}
	if a.kind == 0 && b.kind == 0 && bytes.Equal(a.raw, b.raw) {
		return true, nil
	}
	for _, v := range []*value{a, b} {
		if err := v.open(); err != nil {
			return false, err
		}
	}
	switch {
	case a.kind != b.kind || len(a.members) != len(b.members) || len(a.items) != len(b.items):
		return false, nil
	case a.kind == 0:
		return alikeScalars(a.raw, b.raw), nil
	}
	for i := range a.items {
		if same, err := alike(a.items[i], b.items[i]); !same || err != nil {
			return false, err
		}
	}
	inB := b.byName()
	for i := range a.members {
		if same, err := alike(a.members[i].value, inB(a.members[i].name)); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// alikeScalars compares texts, numbers and words.
func alikeScalars(a, b []byte) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case len(a) == 0 || len(b) == 0:
		return false
	case a[0] == '"' && b[0] == '"':
		x, isText := appendPlain(nil, a[1:len(a)-1])
		y, isText2 := appendPlain(nil, b[1:len(b)-1])
		return isText && isText2 && bytes.Equal(x, y)
	}
	x, err := strconv.ParseFloat(string(a), 64)
	y, err2 := strconv.ParseFloat(string(b), 64)
	return err == nil && err2 == nil && x == y
}

// manyMembers is from how many members on an object's are looked up in a map.
const manyMembers = 16

// byName returns a function that finds the members of an object that was taken apart; nil if it has none
// of that name.
func (v *value) byName() func(name string) *value {
	if len(v.members) < manyMembers {
		return func(name string) *value {
			if i := v.member(name); i >= 0 {
				return v.members[i].value
			}
			return nil
		}
	}
	places := make(map[string]*value, len(v.members))
	for i := range v.members {
		places[v.members[i].name] = v.members[i].value
	}
	return func(name string) *value { return places[name] }
}
