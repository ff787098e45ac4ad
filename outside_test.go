package holdfast_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
)

// TestOutsideIsChecked: what a contract cannot say is refused with the name of the field.
func TestOutsideIsChecked(t *testing.T) {
	for field, wrong := range map[string]holdfast.Outside{
		"ExpiresAfter": {ExpiresAfter: -time.Second},
		"FinishedBy":   {FinishedBy: "nobody"},
		"Result":       {Result: json.RawMessage(`{"type":"wrong"}`)},
	} {
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), "the field "+field) {
			t.Errorf("%+v: %v, want an error about the field %s", wrong, err, field)
		}
	}
	for _, right := range []holdfast.Outside{{},
		{ExpiresAfter: time.Hour, FinishedBy: access.RoleApprover, Result: json.RawMessage(`{"type":"object"}`)}} {
		if err := right.Validate(); err != nil {
			t.Errorf("%+v: %v", right, err)
		}
	}
}
