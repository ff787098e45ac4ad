package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// outline writes a checked value as its members and elements are read: strings without
// escapes, objects in braces, lists in brackets.
func outline(b *strings.Builder, value []byte) {
	switch value[0] {
	case '{':
		b.WriteString("{")
		for name, member := range strictjson.Members(value) {
			fmt.Fprintf(b, "%s=", name)
			outline(b, member)
		}
		b.WriteString("}")
	case '[':
		b.WriteString("[")
		for element := range strictjson.Elements(value) {
			outline(b, element)
		}
		b.WriteString("]")
	case '"':
		fmt.Fprintf(b, "<%s>", strictjson.Text(value))
	default:
		fmt.Fprintf(b, "%s;", value)
	}
}

// TestMembers: values are found whole, whatever is in them and around them.
func TestMembers(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:       `{}`,
		` [ ] `:    `[]`,
		`{"a":1}`:  `{a=1;}`,
		`[1,2 ,3]`: `[1;2;3;]`,
		"\n{ \"a\" : [ null , true ] ,\t\"b\":-1.5e3 , \"c\" : { } }\r\n": `{a=[null;true;]b=-1.5e3;c={}}`,
		`{"a\"\u0062":"}\\","\\":"\\\"]","":"[{"}`:                        `{a"b=<}\>\=<\"]>=<[{>}`,
		`[["]"],[[{"a":"[\"{"}]],{"b":["}",{"c":[]}]}]`:                   `[[<]>][[{a=<["{>}]]{b=[<}>{c=[]}]}]`,
		`["` + strings.Repeat(`\\`, 9) + `","` + strings.Repeat(`\"`, 3) + `"]`: `[<` + strings.Repeat(`\`, 9) +
			`><""">]`,
	} {
		if _, err := strictjson.Check([]byte(body), nil); err != nil {
			t.Errorf("%s is refused: %v", body, err)
			continue
		}
		var b strings.Builder
		outline(&b, []byte(strings.TrimSpace(body)))
		if got := b.String(); got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

// TestMembersOfOthers: what is not an object has no members, what is not a list no
// elements, and what is not a string no text; and one can stop at any of them.
func TestMembersOfOthers(t *testing.T) {
	for name := range strictjson.Members([]byte(`null`)) {
		t.Errorf("null has a member %s", name)
	}
	for element := range strictjson.Elements([]byte(`null`)) {
		t.Errorf("null has an element %s", element)
	}
	if text := strictjson.Text([]byte(`null`)); text != "" {
		t.Errorf("null is the text %q", text)
	}
	for name := range strictjson.Members([]byte(`{"a":1,"b":2}`)) {
		if string(name) == "a" {
			break
		}
		t.Errorf("%s comes first", name)
	}
	for element := range strictjson.Elements([]byte(`[1,2]`)) {
		if string(element) == "1" {
			break
		}
		t.Errorf("%s comes first", element)
	}
}

// FuzzMembers: the members and elements of whatever Check accepts are those that
// encoding/json finds.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a\"":[1,{"b":"\\\"]}"},null], "\u0063" : "\ud83d\ude00" }`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := strictjson.Check(body, nil); err == nil {
			same(t, []byte(strings.TrimSpace(string(body))))
		}
	})
}

// same fails the test unless encoding/json finds the same in a value.
func same(t *testing.T, value []byte) {
	var (
		members  map[string]json.RawMessage
		elements []json.RawMessage
		text     string
	)
	switch value[0] {
	case '{':
		decode(t, value, &members)
		for name, member := range strictjson.Members(value) {
			if want, ok := members[string(name)]; !ok || string(want) != string(member) {
				t.Fatalf("%s: member %q is %s, want %s", value, name, member, want)
			}
			delete(members, string(name))
			same(t, member)
		}
	case '[':
		decode(t, value, &elements)
		for element := range strictjson.Elements(value) {
			if len(elements) == 0 || string(elements[0]) != string(element) {
				t.Fatalf("%s: found %s, want the first of %s", value, element, elements)
			}
			elements = elements[1:]
			same(t, element)
		}
	case '"':
		decode(t, value, &text)
		if got := strictjson.Text(value); got != text {
			t.Fatalf("%s: found %q, want %q", value, got, text)
		}
	}
	if len(members)+len(elements) > 0 {
		t.Fatalf("%s: not found: %s %s", value, members, elements)
	}
}

func decode(t *testing.T, value []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(value, into); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
}
