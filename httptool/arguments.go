package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// arguments are the members of a call's arguments, in the order in which they were given.
type arguments struct {
	members []argument
	key     string
}

type argument struct {
	name  string
	value json.RawMessage
}

// readArguments reads the members of a JSON object; numbers stay as they are written.
func readArguments(raw json.RawMessage) (*arguments, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("they must be an object")
	}
	a := &arguments{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		a.members = append(a.members, argument{name, value})
	}
	return a, nil
}

// get returns an argument; nil if it is not given, or null.
func (a *arguments) get(name string) json.RawMessage {
	for _, m := range a.members {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// text returns an argument as text; false if it is not given.
func (a *arguments) text(name string) (string, bool, error) {
	if name == callKey {
		return a.key, a.key != "", nil
	}
	value := a.get(name)
	if value == nil {
		return "", false, nil
	}
	s, err := scalar(name, value)
	return s, err == nil, err
}

// list returns an argument as texts: of a list its items, of anything else itself.
func (a *arguments) list(name string) ([]string, error) {
	if name == callKey {
		return []string{a.key}, nil
	}
	value := a.get(name)
	if value == nil {
		return nil, nil
	}
	if value[0] != '[' {
		s, err := scalar(name, value)
		return []string{s}, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return nil, err
	}
	var all []string
	for _, item := range items {
		s, err := scalar(name, item)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// scalar returns a string, number or boolean as text.
func scalar(name string, value json.RawMessage) (string, error) {
	switch value[0] {
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return s, err
	case '{', '[':
		return "", fmt.Errorf("%s must be a string, a number or a boolean, because it becomes part "+
			"of the URL or of a text", name)
	}
	return string(value), nil
}

// styled returns an argument as texts, by the style of its place.
func (a *arguments) styled(name string, s style) ([]string, error) {
	if s != styleJSON {
		return a.list(name)
	}
	value := a.get(name)
	if value == nil {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		return nil, err
	}
	return []string{b.String()}, nil
}

// deep returns a member of the query for each member of an object: name[member]=value.
func (a *arguments) deep(name, argument string) ([]string, error) {
	value := a.get(argument)
	if value == nil {
		return nil, nil
	}
	object, err := readArguments(value)
	if err != nil {
		return nil, fmt.Errorf("%s must be an object", argument)
	}
	var all []string
	for _, m := range object.members {
		values, err := object.list(m.name)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			all = append(all, name+"%5B"+escape(m.name)+"%5D="+escape(v))
		}
	}
	return all, nil
}
