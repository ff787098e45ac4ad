package thread

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// RecordedResult is such a result.
type RecordedResult struct {
	Format  int             `json:"format"`
	Tool    string          `json:"tool"`
	Content json.RawMessage `json:"content"`
	Failed  bool            `json:"failed,omitempty"`
	// Patch is what the call did to the shared state, as a JSON merge patch (RFC
	// 7396); Whole is set if it cannot be told so, and then is the state after it.
	Patch json.RawMessage `json:"patch,omitempty"`
	Whole json.RawMessage `json:"whole,omitempty"`
}

func (k *RecordedResult) Remember(before, after []byte) {
	patch, err := jsonpatch.CreateMergePatch(orObject(before), after)
	if err != nil { // one of them is no object
		k.Whole = after
		return
	}
	k.Patch = patch
}

// Again changes a state as the call did.
func (k *RecordedResult) Again(state json.RawMessage) (json.RawMessage, error) {
	if len(k.Whole) > 0 {
		return k.Whole, nil
	}
	return jsonpatch.MergePatch(orObject(state), k.Patch)
}

// orObject is an empty state as the object that it is shown as.
func orObject(state []byte) []byte {
	if len(state) == 0 || string(state) == "null" {
		return []byte("{}")
	}
	return state
}

// CallHash is the same for calls of the same tool with the same arguments, however
// they are written.
func CallHash(tool, arguments string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + canonical(arguments)))
	return hex.EncodeToString(sum[:16])
}

// canonical writes JSON with sorted members and without blanks. Numbers stay as
// they are written. What is not JSON stays as it is.
func canonical(text string) string {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return text
	}
	return string(MustJSON(v))
}
