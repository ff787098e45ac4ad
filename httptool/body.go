package httptool

// The body of a request: JSON with places for arguments. Values go in as JSON, never as
// text of it, so none of them can change what is around it.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// node is a value of a body's template: one of a literal, an argument, a text with
// arguments in it, an array or an object.
type node struct {
	literal json.RawMessage
	name    string
	text    template
	members []member
	kind    byte // of an array '[', of an object '{'
}

type member struct {
	name  string
	value *node
}

// parseBody reads the template of a body. Variables of the environment are not put into
// bodies: a body is data, and data is what models may repeat.
func parseBody(raw json.RawMessage) (*node, error) {
	if !json.Valid(raw) {
		return nil, fmt.Errorf("it must be JSON")
	}
	return parseNode(json.NewDecoder(bytes.NewReader(raw)))
}

func parseNode(d *json.Decoder) (*node, error) {
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := &node{kind: byte(t)}
		for d.More() {
			name := ""
			if t == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				name, _ = key.(string)
			}
			value, err := parseNode(d)
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, member{name, value})
		}
		_, err := d.Token() // the end
		return n, err
	case string:
		return parseText(t)
	}
	literal, err := json.Marshal(t)
	return &node{literal: literal}, err
}

// parseText reads a string of a template.
func parseText(s string) (*node, error) {
	if !strings.ContainsAny(s, "{}") {
		return &node{literal: mustJSON(s)}, nil
	}
	if strings.Contains(s, "${") {
		return nil, fmt.Errorf("%q has a ${…}: variables of the environment are only put into the URL and headers", s)
	}
	t, err := parseTemplate(s, nil)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	if len(t) == 1 && t[0].name != callKey {
		return &node{name: t[0].name}, nil
	}
	return &node{text: t}, nil
}

// names returns the names of the arguments in a body.
func (n *node) names() []string {
	if n == nil {
		return nil
	}
	all := n.text.names()
	if n.name != "" {
		all = append(all, n.name)
	}
	for _, m := range n.members {
		all = append(all, m.value.names()...)
	}
	return all
}

// write writes a value; false if it needs an argument that is not given.
func (n *node) write(b *bytes.Buffer, a *arguments) (bool, error) {
	switch {
	case n.kind != 0:
		return true, n.writeMembers(b, a)
	case n.name != "":
		i := slices.IndexFunc(a.members, func(m argument) bool { return m.name == n.name })
		if i < 0 {
			return false, nil
		}
		b.Write(a.members[i].value)
	case n.text != nil:
		s, given, err := n.text.expand(a, func(_ piece, v string) (string, error) { return v, nil })
		if err != nil || !given {
			return false, err
		}
		b.Write(mustJSON(s))
	default:
		b.Write(n.literal)
	}
	return true, nil
}

// writeMembers writes an array or an object without the members that are not given.
func (n *node) writeMembers(b *bytes.Buffer, a *arguments) error {
	b.WriteByte(n.kind)
	empty := true
	for _, m := range n.members {
		var value bytes.Buffer
		given, err := m.value.write(&value, a)
		if err != nil {
			return err
		}
		if !given {
			continue
		}
		if !empty {
			b.WriteByte(',')
		}
		empty = false
		if n.kind == '{' {
			b.Write(mustJSON(m.name))
			b.WriteByte(':')
		}
		b.Write(value.Bytes())
	}
	b.WriteByte(n.kind + 2) // ] after [, } after {
	return nil
}

// mustJSON writes a string as JSON, without escapes that only HTML needs.
func mustJSON(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be written
	return bytes.TrimSpace(b.Bytes())
}
