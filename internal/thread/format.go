package thread

import (
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

// Every value that this package stores says in which data format it is, in its member
// dataFormat. The formats are numbers from 1, and this version reads all of them up to Format:
// a value of an earlier one is read as it is, with what it does not have yet at its zero value.
// A value of a newer format is refused and left untouched, because a process that does not know
// a member would drop it, or act as if it were not there.
//
// A new member gets a new format only if an earlier reader would do harm, and then these
// constants say from when on it is written:
//
//   - Format is the newest one.
//   - FormatBefore is what the version before reads, which this one can write too.
//
// A written value names the format that it needs. A state, its checkpoints and its run have
// the format that all processes agreed to write when the run began or was taken over (package
// dataformat); what no newer format has changed is written as FormatBefore.
//
// The build tag nextformat makes a server of the format that is to come, which differs in
// nothing but its number. The tests of rolling upgrades have it beside this one.

// latest is the newest data format that was ever written by a version of Holdfast.
const latest = 2

// FormatIndexed is the first format whose writers keep the index: a commit that stores a state says in
// which lists the thread is then (see [Save]). A reader of format 1
// alone must not write to a thread that is in it, because it would leave the thread where it was listed
// before.
const FormatIndexed = 2

// FormatPatched is the first format in which a version of the shared state may be a patch on the one before
// it. A reader of format 1 alone would take the patch for the state.
const FormatPatched = 2

// checkFormat returns an error for a format that this version does not read.
func checkFormat(what string, format int) error {
	switch {
	case format < 1:
		return fmt.Errorf("%w: %s does not say its data format", ErrUnreadable, what)
	case format > Format:
		return &store.VersionError{What: what, Stored: format, Known: Format}
	}
	return nil
}
