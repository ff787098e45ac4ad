package thread

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// An answer that does not have the form that its agent's answers must have.

// Misfit is such an answer after it was taken back, until the next one is complete.
type Misfit struct {
	// Answer is what the model said; of a long answer the beginning.
	Answer string `json:"answer"`
	// Errors are what is wrong with it.
	Errors []string `json:"errors"`
}

// maxMisfit bounds what is stored of an answer that does not fit, in bytes: it is in the
// thread's state.
const maxMisfit = 64 << 10

// NewMisfit returns the misfit of an answer.
func NewMisfit(answer string, errs []string) *Misfit {
	if len(answer) > maxMisfit {
		answer = strings.ToValidUTF8(answer[:maxMisfit], "") + "…"
	}
	return &Misfit{answer, errs}
}

// MisfitText tells the model what is wrong with its last answer.
func MisfitText(errs []string) string {
	return "Your last answer does not have the form that is asked for. Its mistakes:\n- " + strings.Join(errs, "\n- ") +
		"\nAnswer again, with nothing but JSON that fits the schema."
}

// MisfitMark returns the metadata of an answer that was kept although it does not fit.
func MisfitMark(errs []string) json.RawMessage {
	return MustJSON(map[string]any{"holdfast": map[string]any{"misfit": errs}})
}

// MisfitOf returns what the mark of an answer says is wrong with it; nil if it has none.
func MisfitOf(m *agui.Message) []string {
	if !bytes.Contains(m.Metadata, []byte(`"misfit"`)) {
		return nil
	}
	var metadata struct {
		Holdfast struct {
			Misfit []string `json:"misfit"`
		} `json:"holdfast"`
	}
	if json.Unmarshal(m.Metadata, &metadata) != nil {
		return nil
	}
	return metadata.Holdfast.Misfit
}

// ResultOf returns the JSON that an answer is; nil if it is none.
func ResultOf(answer *agui.Message) json.RawMessage {
	d, err := answer.Domain()
	if err != nil || !json.Valid([]byte(d.PlainText())) {
		return nil
	}
	return json.RawMessage(d.PlainText())
}
