package thread

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// A thread that goes back with reuseResults keeps the results of the calls that came
// after that point. A call of the same tool with the same arguments then gets one of
// them, the oldest first, instead of running. Each is used once.

// RecordedResult is the result of such a call.
type RecordedResult struct {
	Format  int             `json:"dataFormat"`       // of this value
	Tool    string          `json:"tool"`             // the tool's name
	Content json.RawMessage `json:"content"`          // of the result's message
	Failed  bool            `json:"failed,omitempty"` // the content is an error's text
	// Patch is what the call did to the shared state, as a JSON merge patch (RFC 7396).
	Patch json.RawMessage `json:"patch,omitempty"`
	// Whole is the shared state after the call, if no patch can express the change.
	Whole json.RawMessage `json:"whole,omitempty"`
}

// Remember stores what the call did to the shared state, given the states before and
// after it.
func (k *RecordedResult) Remember(before, after []byte) {
	patch, err := jsonpatch.CreateMergePatch(orObject(before), after)
	if err != nil { // one of them is no object
		k.Whole = after
		return
	}
	k.Patch = patch
}

// Again applies to a state what the call did, and returns the new state.
func (k *RecordedResult) Again(state json.RawMessage) (json.RawMessage, error) {
	if len(k.Whole) > 0 {
		return k.Whole, nil
	}
	return jsonpatch.MergePatch(orObject(state), k.Patch)
}

// orObject replaces an empty state by the empty object that it is shown as.
func orObject(state []byte) []byte {
	if len(state) == 0 || string(state) == "null" {
		return []byte("{}")
	}
	return state
}

// CallHash returns a hash that is equal for calls of the same tool with the same
// arguments, however these are written.
func CallHash(tool, arguments string) string {
	sum := sha256.Sum256(append([]byte(tool+"\x00"), strictjson.CanonicalText([]byte(arguments))...))
	return hex.EncodeToString(sum[:16])
}
