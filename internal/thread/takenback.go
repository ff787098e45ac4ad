package thread

import "slices"

// TakenBack is which call ids were shown and then taken back, with an answer that could
// not be finished. The log still shows them, but no message has them, so only the head
// knows that they must not be used again.
type TakenBack struct {
	// Shown are those ids.
	Shown []string `json:"shownCalls,omitempty"`
	// Unlisted means that there are others, which are not known or would be too many to
	// keep. Then no id that a model chooses is used any more.
	Unlisted bool `json:"shownUnlisted,omitempty"`
}

// maxShown bounds Shown, so that the head does not grow with the thread.
const maxShown = 16

// TakeBack notes that calls with these ids were shown and are taken back.
func (b *TakenBack) TakeBack(ids ...string) {
	for _, id := range ids {
		if b.Used(id) {
			continue
		}
		if len(b.Shown) == maxShown {
			*b = TakenBack{Unlisted: true}
			return
		}
		b.Shown = append(slices.Clip(b.Shown), id)
	}
}

// Used reports whether an id may have been taken back.
func (b *TakenBack) Used(id string) bool { return b.Unlisted || slices.Contains(b.Shown, id) }
