package modelhttp

import (
	"encoding/json"
	"testing"
)

// TestStrict: a schema is sent as strict only if the provider takes it so.
func TestStrict(t *testing.T) {
	t.Parallel()
	closed := `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":`
	for schema, want := range map[string]bool{
		closed + `{"type":"string","description":"x"}}}`:    true,
		closed + closed + `{"type":["integer","null"]}}}}}`: true,
		closed + `{"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/b"}]}}},` +
			`"$defs":{"b":{"type":"number"}}}`: true,
		closed + `{"type":"string","minLength":2}}}`:                                          false,
		closed + `{"type":"object"}}}`:                                                        false,
		closed + `{"type":"array","items":{"type":"object","properties":{"b":{}}}}}}`:         false,
		closed + `{"anyOf":[{"type":"string","x-y":1}]}}}`:                                    false,
		closed + `{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"object"}}}`:                     false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`: false,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`:             false,
		`[]`: false,
	} {
		if got := Strict(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
}
