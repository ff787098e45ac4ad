package schema

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// The value that is checked, as a tree that knows for each part where it stands. Costly facts
// about a part, such as the exact number or the text that it is shown as, are found once, when
// they are first needed.

// node is one value of the JSON that is checked, with where it stands.
type node struct {
	value  any
	parent *node
	name   string // of a member
	place  int    // in a list

	parts    []node   // see members and items
	rational *big.Rat // see number
	print    *fingerprint
	brief    string // see shown
}

// members returns the members of an object, sorted by name, so that the same mistake has the
// same message.
func (n *node) members() []node {
	if object, is := n.value.(map[string]any); is && n.parts == nil && len(object) > 0 {
		n.parts = make([]node, 0, len(object))
		for _, k := range slices.Sorted(maps.Keys(object)) {
			n.parts = append(n.parts, node{value: object[k], parent: n, name: k})
		}
	}
	return n.parts
}

// items returns the items of a list.
func (n *node) items() []node {
	if list, is := n.value.([]any); is && n.parts == nil && len(list) > 0 {
		n.parts = make([]node, len(list))
		for i := range list {
			n.parts[i] = node{value: list[i], parent: n, place: i}
		}
	}
	return n.parts
}

// path returns the JSON pointer of the value.
func (n *node) path() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		name := n.name
		if _, is := n.parent.value.([]any); is {
			name = strconv.Itoa(n.place)
		}
		names = append(names, name)
	}
	slices.Reverse(names)
	return pointer(names)
}

// shown returns the value as it is shown in texts.
func (n *node) shown() string {
	if n.brief == "" {
		n.brief = brief(n.value)
	}
	return n.brief
}

// number returns the value of a number, exactly; nil if it is none.
func (n *node) number() *big.Rat {
	if n.rational == nil {
		if text, is := n.value.(json.Number); is {
			n.rational, _ = new(big.Rat).SetString(string(text))
		}
	}
	return n.rational
}

// isInteger reports whether a number has no fraction.
func (n *node) isInteger() bool {
	text, is := n.value.(json.Number)
	if !is {
		return false
	}
	if !strings.ContainsAny(string(text), ".eE") {
		return true
	}
	r := n.number()
	return r != nil && r.IsInt()
}

// typeName returns the JSON type of the value.
func (n *node) typeName() string {
	switch n.value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// numberSteps is how much work it is to read a number: one of few characters may be long.
func numberSteps(text json.Number) int {
	if strings.ContainsAny(string(text), "eE") {
		return 20
	}
	return 1 + len(text)/16
}

// fingerprint is the same for equal values only: 1.0 and 1 are equal, and the order of
// members does not count.
type fingerprint [sha256.Size]byte

// fingerprint returns the value's, and calls step for each value that it looks at, with
// how much work that is.
func (n *node) fingerprint(step func(int)) fingerprint {
	if n.print != nil {
		return *n.print
	}
	var text []byte
	switch v := n.value.(type) {
	case map[string]any:
		text = append(text, '{')
		for i := range n.members() {
			m := &n.parts[i]
			p := m.fingerprint(step)
			text = append(strconv.AppendQuote(text, m.name), p[:]...)
		}
	case []any:
		text = append(text, '[')
		for i := range n.items() {
			p := n.parts[i].fingerprint(step)
			text = append(text, p[:]...)
		}
	case string:
		text = append(append(text, '"'), v...)
	case json.Number:
		step(numberSteps(v))
		text = append(text, '0')
		text = append(text, n.number().RatString()...)
	default:
		text = fmt.Append(text, v)
	}
	step(1 + len(text)/bytesPerStep)
	p := fingerprint(sha256.Sum256(text))
	n.print = &p
	return p
}
