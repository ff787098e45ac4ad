package agui

import "encoding/json"

// StateRef is a STATE_SNAPSHOT as a log keeps it: the id of the stored state; empty if
// there is none.
type StateRef struct {
	Base
	ID string `json:"ref"`
	// State is the state itself, if it is known. It is not written.
	State json.RawMessage `json:"-"`
}

// StateDeltaRef is a STATE_DELTA as a log keeps it: the id of the stored state that it makes.
type StateDeltaRef struct {
	Base
	ID string `json:"ref"`
	// Delta is the patch itself, if it is known. It is not written.
	Delta json.RawMessage `json:"-"`
}
