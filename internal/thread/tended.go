package thread

import "time"

// Tended is what retention knows of a thread without reading more than its state. The version
// before drops it, which has retention look again.
type Tended struct {
	// Tidied is the number that the thread's next record had when retention was through with what
	// its last run has left: its log is archived, and it is not too large. Another number means that
	// this is still to be done; 0, that it never was.
	Tidied uint64 `json:"tidied,omitempty"`
	// Oldest is when the oldest checkpoint was taken, or a time before that, in milliseconds since
	// 1970.
	Oldest int64 `json:"oldest,omitempty"`
	// Single means that there is one checkpoint, which stays however old it is.
	Single bool `json:"single,omitempty"`
}

// took notes that a checkpoint is taken, as the n-th of the thread, of which so many are kept.
func took(t *Tended, n int, now time.Time, keep int) {
	if n == 1 || keep == 1 {
		NoteKept(t, now, true)
		return
	}
	t.Single = false // without Oldest, a version before has taken the one before
}

// NoteKept notes when the oldest checkpoint was taken, and whether it is the only one.
func NoteKept(t *Tended, oldest time.Time, single bool) {
	t.Oldest, t.Single = oldest.UnixMilli(), single
}

// Aging returns when the oldest checkpoint was taken, at the latest, of a thread that has taken so many;
// false if none of them can become too old.
func Aging(t *Tended, checkpoints int) (time.Time, bool) {
	return time.UnixMilli(t.Oldest).UTC(), checkpoints > 1 && !t.Single
}

// Tidy reports whether retention is through with what the thread's last run has left; next is the
// number of its next record.
func Tidy(t *Tended, next uint64) bool { return t.Tidied != 0 && t.Tidied == next }
