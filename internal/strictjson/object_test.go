package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// TestReadObject: an object in its usual form is read as encoding/json reads it, and all that is not in that form,
// or is no object, is left to encoding/json.
func TestReadObject(t *testing.T) {
	t.Parallel()
	for text, read := range map[string]bool{
		`{}`:                               true,
		` { } `:                            true,
		`{"a":1}`:                          true,
		` { "a" : [ 1 ] , "b":{"c":null}}`: true,
		`{"a":"\u00e9","é":"\n"}`:          true,
		``:                                 false,
		`[]`:                               false,
		`null`:                             false,
		`{`:                                false,
		`{"a"`:                             false,
		`{"a":`:                            false,
		`{"a":1`:                           false,
		`{"a":1 "b":2}`:                    false,
		`{"a":1,}`:                         false,
		`{"a":1}x`:                         false,
		`{a:1}`:                            false,
		`{"a`:                              false,
		`{"a":tru}`:                        false,
		`{"\u0061":1}`:                     false, // which is valid, but not usual
		"{\"a\":\"\xff\"}":                 false,
	} {
		members := map[string]json.RawMessage{}
		ok := strictjson.ReadObject([]byte(text), func(name, value []byte) bool {
			members[string(name)] = append(json.RawMessage(nil), value...)
			return true
		})
		if ok != read {
			t.Errorf("%s is read: %t", text, ok)
		}
		if !ok {
			continue
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &want); err != nil || len(want) != len(members) {
			t.Errorf("%s is read as %s, %v", text, members, err)
		}
		for name, value := range want {
			if string(members[name]) != string(value) {
				t.Errorf("%s: %s is %s", text, name, members[name])
			}
		}
	}
	if strictjson.ReadObject([]byte(`{"a":1,"b":2}`), func(name, _ []byte) bool { return string(name) == "a" }) {
		t.Error("an object is read although a member was refused")
	}
}

// TestReadString: a string is read as encoding/json reads it, or is left to it.
func TestReadString(t *testing.T) {
	t.Parallel()
	for text, read := range map[string]bool{
		`""`:                      true,
		`"a"`:                     true,
		`"日本"`:                    true,
		`"a\"b\\c\/d\b\f\n\r\te"`: true,
		`"\n"`:                    true,
		`"\u0061"`:                false, // which is valid
		`"\x"`:                    false,
		`"a`:                      false,
		`"`:                       false,
		``:                        false,
		`1`:                       false,
		`"a\"`:                    false,
		`"a"b"`:                   false,
		"\"\n\"":                  false,
		"\"\xff\"":                false,
	} {
		got, ok := strictjson.ReadString([]byte(text))
		var want string
		if err := json.Unmarshal([]byte(text), &want); ok != read || ok && (err != nil || got != want) {
			t.Errorf("%s is read as %q, %t; want %q, %t", text, got, ok, want, read)
		}
	}
}
