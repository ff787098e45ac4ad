package shared_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

func TestCanonicalJSON(t *testing.T) {
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
		if got := shared.CanonicalJSON(v); string(got) != want {
			t.Errorf("%s: got %s, want %s", give, got, want)
		}
	}
}
