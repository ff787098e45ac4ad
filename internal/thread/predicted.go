package thread

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// A log names each state that is stored, and each change of one, by a reference. A STATE_DELTA that is written out
// is one that a call predicts: clients have what it makes until the next STATE_SNAPSHOT.

// PredictedMark returns the metadata of an event that shows what a call predicts.
func PredictedMark(call string) json.RawMessage {
	return MustJSON(map[string]any{"holdfast": map[string]string{"predicted": call}})
}

// IsPredicted reports whether an event of a log shows what a call predicts.
func IsPredicted(ev agui.Event) bool {
	_, is := ev.(agui.StateDelta)
	return is
}

// Predicts reports whether a log shows what a call predicts, after its records behind the boundary of a state.
func Predicts(w *Work, records []store.Record) bool {
	predicts := w.Predicted
	for i := range records {
		if kind := agui.TypeOf(records[i].Data); records[i].Number > w.Boundary.Number &&
			(kind == agui.TypeStateSnapshot || kind == agui.TypeStateDelta) {
			_, stored := agui.RefOf(records[i].Data)
			predicts = !stored
		}
	}
	return predicts
}

// settled returns a record of a log as an archive has it: what a call has predicted has been taken back by then, and
// is left out.
func settled(data []byte) []byte {
	if agui.TypeOf(data) != agui.TypeStateDelta {
		return data
	}
	if _, stored := agui.RefOf(data); stored {
		return data
	}
	return agui.Append(nil, agui.StateDelta{Delta: json.RawMessage("[]")})
}
