package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOutputMistakes: a schema that cannot be used is refused with the places of what is
// wrong.
func TestOutputMistakes(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"type":"object"}`: "",
		`{"type":"object","properties":{"a":{"type":"string","pattern":"(?<!x)"}}}`: "",
		`{"type":"object","properties":{"a":{"type":"strin"}}}`:                     "/properties/a/type: ",
		`{"type":"object","properties":{"a":{"minimum":"1"}},"required":"a"}`: `/properties/a/minimum: "1" is ` +
			`a string, but it must be a number|/required: "a" is a string, but it must be an array`,
		`{"type":"array"}`: "type: object",
		`[]`:               "type: object",
		`{`:                "cannot be read",
		``:                 "cannot be read",
		`{"type":"object","$ref":"https://a.example/b"}`:                       "not followed",
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/there-is-not"}}}`: "there-is-not",
	} {
		var got []string
		for _, m := range OutputMistakes("report", json.RawMessage(raw)) {
			got = append(got, m.String())
		}
		all := strings.Join(got, "|")
		if want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %s, want %s", raw, all, want)
		}
	}
	if m := OutputMistakes("a b", json.RawMessage(`{"type":"object"}`)); len(m) != 1 ||
		!strings.Contains(m[0].Text, "letters") {
		t.Errorf("%v", m)
	}
}
