package holdfast_test

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestOutputOf: the form of an answer is that of the type it is decoded into, and a type that
// has no form is noticed when the program starts.
func TestOutputOf(t *testing.T) {
	t.Parallel()
	type invoice struct {
		Total float64 `json:"total" jsonschema:"in euros"`
		Note  string  `json:"note,omitempty"`
	}
	o := holdfast.OutputOf[invoice]("invoice")
	if s := string(o.Schema); o.Name != "invoice" || !strings.Contains(s, `"required":["total"]`) ||
		!strings.Contains(s, "in euros") {
		t.Errorf("%s: %s", o.Name, s)
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "cannot be described") {
			t.Errorf("a type without a form: %q", p)
		}
	}()
	holdfast.OutputOf[func()]("f")
}
