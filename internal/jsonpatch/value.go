package jsonpatch

// A document while it is changed: only what is changed is taken apart, and the rest stays as it is written.

import (
	"slices"
	"strconv"
)

// value is a value of a document that is changed. It is only taken apart where something changes.
type value struct {
	raw     []byte   // its text, unless it was taken apart
	kind    byte     // '{' or '[' if it was
	members []member // of an object
	items   []*value // of an array
}

// member is a member of an object.
type member struct {
	name  string
	text  []byte // the name as it is written, with its quotes
	value *value
}

// append appends the text of a value.
func (v *value) append(to []byte) []byte {
	switch v.kind {
	case '{':
		to = append(to, '{')
		for i := range v.members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(append(to, v.members[i].text...), ':')
			to = v.members[i].value.append(to)
		}
		return append(to, '}')
	case '[':
		to = append(to, '[')
		for i, item := range v.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = item.append(to)
		}
		return append(to, ']')
	}
	return append(to, v.raw...)
}

// open takes a value apart. The kind of one that has no parts is 0.
func (v *value) open() error {
	if v.kind != 0 || len(v.raw) == 0 {
		return nil
	}
	switch v.raw[0] {
	case '{':
		return v.openObject()
	case '[':
		return v.openArray()
	}
	return nil
}

func (v *value) openObject() error {
	b := v.raw
	at := skipSpace(b, 1)
	seen := map[string]int{}
	for at < len(b) && b[at] != '}' {
		end, escaped := endOfString(b, at)
		if b[at] != '"' || end == 0 {
			return errText
		}
		m := member{text: b[at:end:end]}
		if escaped {
			plain, ok := appendPlain(nil, b[at+1:end-1])
			if !ok {
				return errName
			}
			m.name = string(plain)
		} else {
			m.name = string(b[at+1 : end-1])
		}
		if at = skipSpace(b, end); at >= len(b) || b[at] != ':' {
			return errText
		}
		at = skipSpace(b, at+1)
		if end = endOfValue(b, at); end == 0 {
			return errText
		}
		m.value = &value{raw: b[at:end:end]}
		if i, twice := seen[m.name]; twice { // as JavaScript does
			v.members[i] = m
		} else {
			seen[m.name] = len(v.members)
			v.members = append(v.members, m)
		}
		if at = skipSpace(b, end); at < len(b) && b[at] == ',' {
			at = skipSpace(b, at+1)
		} else if at >= len(b) || b[at] != '}' {
			return errText
		}
	}
	v.kind, v.raw = '{', nil
	return nil
}

func (v *value) openArray() error {
	b := v.raw
	at := skipSpace(b, 1)
	for at < len(b) && b[at] != ']' {
		end := endOfValue(b, at)
		if end == 0 {
			return errText
		}
		v.items = append(v.items, &value{raw: b[at:end:end]})
		if at = skipSpace(b, end); at < len(b) && b[at] == ',' {
			at = skipSpace(b, at+1)
		} else if at >= len(b) || b[at] != ']' {
			return errText
		}
	}
	v.kind, v.raw = '[', nil
	return nil
}

// endOfValue returns where the value that begins there ends; 0 if it does not.
func endOfValue(b []byte, at int) int {
	if at >= len(b) {
		return 0
	}
	switch b[at] {
	case '"':
		end, _ := endOfString(b, at)
		return end
	case '{', '[':
		for depth := 0; at < len(b); at++ {
			switch b[at] {
			case '"':
				end, _ := endOfString(b, at)
				if end == 0 {
					return 0
				}
				at = end - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
		return 0
	}
	if end := endOfScalar(b, at); end > at {
		return end
	}
	return 0
}

// member returns the place of a member; -1 if there is none.
func (v *value) member(name string) int {
	return slices.IndexFunc(v.members, func(m member) bool { return m.name == name })
}

// index returns the place that a name stands for among n; one of more than most is none.
func index(name string, most int) (int, error) {
	i, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(i) != name || i < 0 || i > most {
		return 0, errIndex
	}
	return i, nil
}

// find returns the value at a path.
func find(v *value, path []string) (*value, error) {
	for _, name := range path {
		if err := v.open(); err != nil {
			return nil, err
		}
		switch v.kind {
		case '{':
			i := v.member(name)
			if i < 0 {
				return nil, errMissing
			}
			v = v.members[i].value
		case '[':
			i, err := index(name, len(v.items)-1)
			if err != nil {
				return nil, err
			}
			v = v.items[i]
		default:
			return nil, errScalar
		}
	}
	return v, nil
}

// parent returns the value that the last name of a path is in, taken apart.
func parent(root *value, path []string) (*value, string, error) {
	v, err := find(root, path[:len(path)-1])
	if err == nil {
		err = v.open()
	}
	if err == nil && v.kind == 0 {
		err = errScalar
	}
	return v, path[len(path)-1], err
}

// add puts a value at a path.
func add(root **value, path []string, added *value) error {
	if len(path) == 0 {
		*root = added
		return nil
	}
	in, name, err := parent(*root, path)
	if err != nil {
		return err
	}
	if in.kind == '{' {
		in.set(name, added)
		return nil
	}
	i := len(in.items)
	if name != "-" {
		if i, err = index(name, len(in.items)); err != nil {
			return err
		}
	}
	in.items = slices.Insert(in.items, i, added)
	return nil
}

// set adds or replaces a member.
func (v *value) set(name string, to *value) {
	if i := v.member(name); i >= 0 {
		v.members[i].value = to
		return
	}
	text := []byte{'"'}
	for i := range len(name) {
		text = appendByte(text, name[i])
	}
	v.members = append(v.members, member{name, append(text, '"'), to})
}

// remove takes the value at a path out.
func remove(root **value, path []string) (*value, error) {
	if len(path) == 0 {
		was := *root
		*root = &value{raw: []byte("null")}
		return was, nil
	}
	in, name, err := parent(*root, path)
	if err != nil {
		return nil, err
	}
	if in.kind == '{' {
		i := in.member(name)
		if i < 0 {
			return nil, errMissing
		}
		was := in.members[i].value
		in.members = slices.Delete(in.members, i, i+1)
		return was, nil
	}
	i, err := index(name, len(in.items)-1)
	if err != nil {
		return nil, err
	}
	was := in.items[i]
	in.items = slices.Delete(in.items, i, i+1)
	return was, nil
}
