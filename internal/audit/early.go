package audit

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A document that a build from before the first release has exported is imported, too: it is the
// way for threads out of the stores of such builds, which are refused. Their values have another
// stamp, and the last of their formats had the members of the first format.

const (
	// earlyStamp is the member with the format of such a build, and stamp the one of now.
	earlyStamp = "format"
	stamp      = "dataFormat"
	// Between these formats, such a build has written what can be read as the first format.
	firstEarly, lastEarly = 5, 11
)

// restamp gives the state and the values of a document the stamp of now, if they have that of an
// early build.
func (all *everything) restamp() (err error) {
	if all.head.State, err = restamped(all.head.State); err != nil {
		return fmt.Errorf("%w: its state %w", errDocument, err)
	}
	for kind, values := range all.values {
		if kind == store.KindBlob {
			continue // the only kind whose values do not say their format
		}
		for i := range values {
			if values[i].Data, err = restamped(values[i].Data); err != nil {
				return fmt.Errorf("%w: its %s %s %w", errDocument, kind, values[i].ID, err)
			}
		}
	}
	return nil
}

// restamped returns a value with the stamp of now. One that has it already, or is no value at
// all, stays as it is.
func restamped(data []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	var format int
	if json.Unmarshal(data, &members) != nil || members[stamp] != nil ||
		json.Unmarshal(members[earlyStamp], &format) != nil {
		return data, nil
	}
	if format < firstEarly || format > lastEarly {
		return nil, fmt.Errorf("has format %d of an early build; formats %d to %d can be imported: let the last "+
			"build before the first release go on with the thread, and export it again", format, firstEarly, lastEarly)
	}
	delete(members, earlyStamp)
	members[stamp] = thread.MustJSON(1)
	if state, ok := members["state"]; ok { // of a checkpoint
		inner, err := restamped(state)
		if err != nil {
			return nil, err
		}
		members["state"] = inner
	}
	return thread.MustJSON(members), nil
}
