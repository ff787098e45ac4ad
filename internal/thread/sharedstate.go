package thread

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/store"
)

// The versions of the shared state. Each change makes one, and the head and each checkpoint name theirs. A
// version is a document, whole, or a patch on the version before it, so that what a change costs depends on
// what it changes.
//
// A version that is whole has a name of its own. The patches on it are numbered from 1, and named by it and their
// number: so all that a version consists of is known from its name, and read at once. Nothing is ever written twice
// under one name: the versions of a thread are in one line, and a thread that leaves it (a rewind) begins with a
// version that is whole.
//
// When the patches on a document have become larger than it is, the next version is whole again. So what
// is read of a state is at most a few times as large as it is, and what is written for the documents is
// less than what is written for the patches.

// patched stands between the name of a whole version and the number of a patch on it.
const patched = "+"

// patchesPerDocument is how many times as large as their document the patches on it may become.
const patchesPerDocument = 2

// Shared is a version of the shared state.
type Shared struct {
	ID    string          // its name; empty if there is no state
	State json.RawMessage // the document; nil if there is none
	// patches is how large the patches are that it was read from, in bytes.
	patches int
}

// SharedPatch is a version that is a patch, as it is stored.
type SharedPatch struct {
	Format int `json:"dataFormat"`
	// Message is the result of the call that made the change; empty if no call did.
	Message string `json:"message,omitempty"`
	// At is when, in ms since 1970.
	At    int64           `json:"at"`
	Patch json.RawMessage `json:"patch"` // on the version before
}

// SharedChange is a change of the shared state.
type SharedChange struct {
	Shared             // the version that it makes
	Put    store.Value // stores it
	// Patch makes the document out of the one before; nil if it is stored whole.
	Patch json.RawMessage
}

// Name returns the name of the version; NoState if there is no state.
func (s *Shared) Name() string { return cmp.Or(s.ID, NoState) }

// baseOf returns the name of the whole version that a version is made of, and the number of its patch; 0 if
// it is whole itself.
func baseOf(id string) (base string, patches int) {
	at := strings.LastIndex(id, patched)
	if at < 0 {
		return id, 0
	}
	n, err := strconv.Atoi(id[at+1:])
	if err != nil || n < 1 || n > maxPatches || strconv.Itoa(n) != id[at+1:] {
		return id, 0
	}
	return id[:at], n
}

// maxPatches bounds the patches on a document, for names that nobody has made.
const maxPatches = 1 << 20

// SharedParts returns the names of the blobs that a version is made of, the whole document first.
func SharedParts(id string) []string {
	base, n := baseOf(id)
	parts := make([]string, 1, n+1)
	parts[0] = base
	for i := range n {
		parts = append(parts, base+patched+strconv.Itoa(i+1))
	}
	return parts
}

// SharedOf puts a version together from its parts, in the order of [SharedParts].
func SharedOf(id string, parts [][]byte) (Shared, error) {
	s := Shared{ID: id, State: parts[0]}
	if len(parts) == 1 {
		return s, nil
	}
	patches := make([][]byte, 0, len(parts)-1)
	for i, part := range parts[1:] {
		var p SharedPatch
		if err := Decode(part, &p); err != nil {
			return s, fmt.Errorf("patch %d of the shared state %s: %w", i+1, id, err)
		}
		patches = append(patches, p.Patch)
		s.patches += len(part)
	}
	state, err := jsonpatch.Apply(parts[0], patches...)
	if err != nil {
		return s, fmt.Errorf("the shared state %s: %w: %w", id, ErrUnreadable, err)
	}
	s.State = state
	return s, nil
}

// SharedIn is [SharedOf] with what find returns for the names of the parts, as long as they are there. The
// error is ErrNoBlob if one is not.
func SharedIn(id string, find func(name string) ([]byte, bool)) (Shared, error) {
	base, n := baseOf(id)
	var parts [][]byte
	for i := range n + 1 {
		name := base
		if i > 0 {
			name += patched + strconv.Itoa(i)
		}
		part, there := find(name)
		if !there {
			return Shared{ID: id}, fmt.Errorf("%w: %s", ErrNoBlob, name)
		}
		parts = append(parts, part)
	}
	return SharedOf(id, parts)
}

// SharedLine returns the whole version that a version is made of, and how many patches it has on it: of two
// versions of one line, the one with fewer is a part of the other.
func SharedLine(id string) (base string, patches int) { return baseOf(id) }

// Change returns the change to the document next, which is JSON; nil if that is the same document. name is
// the name of the new version if it is whole. format is that of the thread's state, message the result
// whose call makes the change, if one does.
//
// A patch is only stored if it makes next out of the document before, which is tried here.
func (s Shared) Change(next json.RawMessage, name string, format int, message string, at time.Time) *SharedChange {
	patch, err := s.patchTo(next, format)
	if err == nil && string(patch) == jsonpatch.None {
		return nil
	}
	if err == nil {
		stored := MustJSON(SharedPatch{Format: FormatPatched, Message: message, At: at.UnixMilli(), Patch: patch})
		base, n := baseOf(s.ID)
		state, wrong := jsonpatch.Apply(s.State, patch)
		if wrong == nil && jsonpatch.Equal(state, next) && len(stored) < len(next) &&
			s.patches+len(stored) <= patchesPerDocument*len(next) && n < maxPatches {
			id := base + patched + strconv.Itoa(n+1)
			return &SharedChange{
				Shared: Shared{ID: id, State: state, patches: s.patches + len(stored)},
				Put:    store.Value{Kind: store.KindBlob, ID: id, Data: stored},
				Patch:  patch,
			}
		}
	}
	return &SharedChange{
		Shared: Shared{ID: name, State: next},
		Put:    store.Value{Kind: store.KindBlob, ID: name, Data: next},
	}
}

// errWhole means that a version is to be stored whole.
var errWhole = errors.New("there is no patch")

// patchTo returns the patch from this version to a document.
func (s Shared) patchTo(next json.RawMessage, format int) (json.RawMessage, error) {
	switch {
	case bytes.Equal(s.State, next):
		return json.RawMessage(jsonpatch.None), nil
	case s.ID == "" || len(s.State) == 0 || format < FormatPatched:
		return nil, errWhole
	}
	return jsonpatch.Diff(s.State, next)
}

// NoState is what stands for the version of a state that there is not.
const NoState = "-"

// SharedAfter returns the id of the blob with the shared state after a call. It is
// derived from the id of the result's message, so that what a recorded result did to
// the shared state can be found.
func SharedAfter(message string) string { return "s/" + message }

// Event returns what the stream shows of the change: a patch if it is one and the stream has shown the
// version before.
func (c *SharedChange) Event(shown bool) agui.Event {
	if shown && c.Patch != nil {
		return agui.StateDeltaRef{ID: c.ID, Delta: c.Patch}
	}
	return agui.StateRef{ID: c.ID, State: c.State}
}
