package permission

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// TestReadJSON: what two readers may understand differently is refused.
func TestReadJSON(t *testing.T) {
	t.Parallel()
	for _, good := range []string{`{}`, `null`, `"a"`, `[1,{"a":[true,{}]},-0.5e3]`, `{"a":{"b":1},"c":{"b":1}}`} {
		v, err := readJSON([]byte(good))
		if err != nil || string(strictjson.Canonical(v)) != good {
			t.Errorf("%s: got %s, %v", good, strictjson.Canonical(v), err)
		}
	}
	for _, bad := range []string{
		``, `{`, `{}{}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"is":1,"i\u017f":2}`, `[{"a":1,"A":2}]`,
		`{"x":{"k":1,"\u212a":2}}`,
		strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
	} {
		if v, err := readJSON([]byte(bad)); err == nil {
			t.Errorf("%.40s: got %v", bad, v)
		}
	}
}

func TestLookUp(t *testing.T) {
	t.Parallel()
	v, err := readJSON([]byte(`{"to":{"country":"DE"},"items":[{"sku":"a"},{"sku":"b"}],"amount":5}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"to.country": `"DE"`, "items.1.sku": `"b"`, "amount": `5`, "items": `[{"sku":"a"},{"sku":"b"}]`,
		"none": "", "to.none": "", "items.2.sku": "", "items.-1": "", "items.x": "", "amount.deeper": "",
		"Amount": "unclear", "to.COUNTRY": "unclear",
	} {
		got, ok, err := lookUp(v, strings.Split(path, "."))
		text := ""
		if ok {
			text = string(strictjson.Canonical(got))
		}
		if err != nil {
			text = "unclear"
		}
		if text != want {
			t.Errorf("%s: got %q, want %q", path, text, want)
		}
	}
}
