package strictjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{
		`{"b": [1, {"d": 1, "c": 2}], "a": null}`: `{"a":null,"b":[1,{"c":2,"d":1}]}`,
		`[1.0, 1e2, 12345678901234567890]`:        `[1.0,1e2,12345678901234567890]`,
		`"<b> & \u00e9"`:                          `"<b> & é"`,
		`true`:                                    `true`,
	} {
		d := json.NewDecoder(bytes.NewReader([]byte(give)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if got := strictjson.Canonical(v); string(got) != want {
			t.Errorf("%s: got %s, want %s", give, got, want)
		}
		if got := strictjson.CanonicalText([]byte(give)); string(got) != want {
			t.Errorf("text %s: got %s, want %s", give, got, want)
		}
	}
}

// TestCanonicalOfOtherTexts: a text that is not one JSON value stays as it is.
func TestCanonicalOfOtherTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"b": 1} {"a": 1}`, "1 x", "not JSON"} {
		if got := strictjson.CanonicalText([]byte(text)); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
