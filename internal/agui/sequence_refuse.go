package agui

// How the sequence machine refuses an event, and what it checks in the event alone.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SequenceError says why an event is not allowed now.
type SequenceError struct {
	Type   Type
	Reason string
}

// Error names the event and the rule.
func (e *SequenceError) Error() string {
	return fmt.Sprintf("%s may not come now: %s", e.Type, e.Reason)
}

func refuse(t Type, format string, args ...any) error {
	return &SequenceError{Type: t, Reason: fmt.Sprintf(format, args...)}
}

func (c *Outcome) check() error {
	switch c.Type {
	case OutcomeSuccess, OutcomeCancelled:
		return nil
	case OutcomeInterrupt:
		seen := map[string]bool{}
		for _, i := range c.Interrupts {
			if i.ID == "" || seen[i.ID] {
				return refuse(TypeRunFinished, "an interrupt has no id of its own")
			}
			seen[i.ID] = true
		}
		if len(seen) > 0 {
			return nil
		}
	}
	return refuse(TypeRunFinished, "its outcome is not one")
}

func needIDs(t Type, ids ...string) error {
	if slices.Contains(ids, "") {
		return refuse(t, "an id or a name is empty")
	}
	return nil
}

func isTextRole(role string) bool {
	switch role {
	case "", "assistant", "user", "system", "developer":
		return true
	}
	return false
}

// checkPatch accepts a list of RFC 6902 operations.
func checkPatch(t Type, patch json.RawMessage) error {
	// Maps, because member names in a patch must match exactly.
	var ops []map[string]json.RawMessage
	if err := json.Unmarshal(patch, &ops); err != nil || ops == nil {
		return refuse(t, "it is not a list of operations")
	}
	for _, op := range ops {
		ok := isPointer(op["path"])
		switch string(op["op"]) {
		case `"add"`, `"replace"`, `"test"`:
			ok = ok && len(op["value"]) > 0
		case `"move"`, `"copy"`:
			ok = ok && isPointer(op["from"])
		case `"remove"`:
		default:
			return refuse(t, "an operation is unknown")
		}
		if !ok {
			return refuse(t, "an operation lacks its value or a JSON pointer")
		}
	}
	return nil
}

// isPointer reports whether raw is a JSON string with an RFC 6901 pointer.
func isPointer(raw json.RawMessage) bool {
	var p *string
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return false
	}
	escapes := strings.Count(*p, "~0") + strings.Count(*p, "~1")
	return (*p == "" || (*p)[0] == '/') && strings.Count(*p, "~") == escapes
}
