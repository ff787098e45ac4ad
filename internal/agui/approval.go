package agui

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// AsksApproval reports whether a question is whether a call may be made, which many clients show beside the call:
// its reason is AG-UI's, and its answer says whether the call is approved.
func AsksApproval(reason, call string, schema json.RawMessage) bool {
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return reason == holdfast.ReasonToolCall && call != "" && json.Unmarshal(schema, &form) == nil &&
		form.Properties["approved"] != nil
}
