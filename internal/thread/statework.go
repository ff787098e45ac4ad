package thread

import "slices"

// StateWork is what a thread knows of changes of the shared state that are not its run's own.
type StateWork struct {
	// StateShown is the version that streams have shown last, if that is another one than the thread's: it
	// was changed while no run was under way. NoState means that there was none.
	StateShown string `json:"stateShown,omitempty"`
	// StateItem is the number of the newest item of the run's inbox whose change is made, if items stay
	// there until the run's end.
	StateItem uint64 `json:"stateItem,omitempty"`
	// StatePatches are the newest of the run's [StatePatch]es that are done with, by their ids: an item that
	// was posted twice, because an answer was lost, may come again after it was taken.
	StatePatches []string `json:"statePatches,omitempty"`
}

// maxStatePatches bounds StatePatches.
const maxStatePatches = 16

// NotePatch notes that a change is done with.
func NotePatch(w *StateWork, id string) {
	w.StatePatches = append(slices.Clone(w.StatePatches), id)
	if more := len(w.StatePatches) - maxStatePatches; more > 0 {
		w.StatePatches = w.StatePatches[more:]
	}
}
