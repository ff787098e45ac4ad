package thread

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Paths: what is read of a history that is shown and not run.

// Path is the way from a thread's first message to a leaf, without the messages. Code that
// shows a history reads them along a Path, a few at a time: a history of many megabytes then
// takes no memory while a slow client reads it.
type Path []step

// step is a message on a Path: its id, and the size of its stored form in bytes.
type step struct {
	id    string
	bytes int
	data  []byte // the stored form, if it was read already; else nil
	// changes are the ids of the messages that change it, which is an activity; they are
	// aside, and not shown themselves.
	changes []string
	aside   bool
}

// changeBy notes that the last step changes the activity of. Its size counts there.
func (p Path) changeBy(of string) {
	last := &p[len(p)-1]
	for i := len(p) - 2; i >= 0; i-- {
		if p[i].id == of {
			p[i].changes, p[i].bytes = append(p[i].changes, last.id), p[i].bytes+last.bytes
			break
		}
	}
	last.aside, last.bytes = true, 0
}

// Path returns the path to the leaf.
func (rd Reader) Path(ctx context.Context, key store.ThreadKey, leaf string) (Path, error) {
	stored, err := rd.Store.Messages(ctx, key)
	if err != nil {
		return nil, ReadError(key, err)
	}
	places, err := pathTo(key, stored, leaf)
	if err != nil {
		return nil, err
	}
	path := make(Path, len(places))
	for i, place := range places {
		path[i] = step{id: stored[place].ID, bytes: len(stored[place].Data)}
		if of := changeIn(stored[place].Data); of != "" {
			path[:i+1].changeBy(of)
		}
	}
	return path, nil
}

// LoadPath reads a thread that must exist, for its owner, with the path of its history,
// which is not empty.
func (rd Reader) LoadPath(ctx context.Context, who holdfast.Principal, id string) (*Thread, Path, error) {
	for {
		t, err := rd.Existing(ctx, who, id)
		if err != nil {
			return nil, nil, err
		}
		path, err := rd.Path(ctx, t.Key, t.State.Leaf)
		if err == nil && len(path) == 0 {
			err = ReadError(t.Key, fmt.Errorf("%w: the head names no message", ErrUnreadable))
		}
		if err == nil || !rd.Moved(ctx, t, err) {
			return t, path, err
		}
	}
}

// keptBytes is the size of a history that a Path keeps. A larger one is read again, a few
// messages at a time, when it is sent.
const keptBytes = 2 << 20

// Steps returns the path of the history, with the messages unless they are large.
func (h *History) Steps() Path {
	path, total := make(Path, len(h.Path)), 0
	for i := range h.Path {
		path[i] = step{id: h.Path[i].ID, bytes: len(h.Raw[i])}
		total += len(h.Raw[i])
		if c, is := ActivityChangeOf(&h.Path[i]); is {
			path[:i+1].changeBy(c.Of)
		}
	}
	for i := range path {
		if total <= keptBytes && !path[i].aside {
			path[i].data = h.shown(&path[i], h.Raw[i])
		}
	}
	return path
}

// shown returns a message of the path, given as it is stored, as it is shown.
func (h *History) shown(s *step, stored []byte) []byte {
	if len(s.changes) == 0 {
		return stored
	}
	changes := make([][]byte, len(s.changes))
	for i, id := range s.changes {
		changes[i] = h.Raw[h.Index[id]]
	}
	return changed(stored, changes)
}

// Leaf returns the id of the last message; "" if there is none.
func (p Path) Leaf() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1].id
}

// Kept returns the size in bytes of the messages that the path has with it.
func (p Path) Kept() (total int64) {
	for i := range p {
		total += int64(len(p[i].data))
	}
	return total
}

// Beyond returns how many of the first messages do not fit into size bytes together with
// all that follow them.
func (p Path) Beyond(size int) int {
	at := len(p)
	for at > 0 && p[at-1].bytes <= size {
		at--
		size -= p[at].bytes
	}
	return at
}

// Shown returns how many of the first messages are shown in a place of their own.
func (p Path) Shown(messages int) (n int) {
	for i := range p[:messages] {
		if !p[i].aside {
			n++
		}
	}
	return n
}

// pageBytes is how many bytes of messages are read at a time, at least one message.
const pageBytes = 64 << 10

// Along reads the messages of a path, in order. After an error it yields nothing more.
func (rd Reader) Along(ctx context.Context, key store.ThreadKey, path Path) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for from := 0; from < len(path); {
			if data := path[from].data; data != nil || path[from].aside {
				if from++; data != nil && !yield(data, nil) {
					return
				}
				continue
			}
			page := path.page(from)
			from += len(page)
			messages, err := rd.Store.MessagesOf(ctx, key, page.ids())
			if err != nil {
				yield(nil, ReadError(key, err))
				return
			}
			at := 0
			for i := range page {
				end := at + 1 + len(page[i].changes)
				data := shownAfter(messages[at:end])
				if at = end; !yield(data, nil) {
					return
				}
			}
		}
	}
}

// page returns the steps from a place on that are read together.
func (p Path) page(from int) Path {
	end, size := from, 0
	for end < len(p) && !p[end].aside && (end == from || size+p[end].bytes <= pageBytes) {
		size += p[end].bytes
		end++
	}
	return p[from:end]
}

// ids returns the ids of the messages, each followed by what changes it.
func (p Path) ids() (ids []string) {
	for i := range p {
		ids = append(append(ids, p[i].id), p[i].changes...)
	}
	return ids
}

// shownAfter returns a message, followed by what changes it, as it is shown. It lets go of what
// was read.
func shownAfter(messages []store.Message) []byte {
	data := messages[0].Data
	messages[0].Data = nil
	if len(messages) == 1 {
		return data
	}
	changes := make([][]byte, 0, len(messages)-1)
	for i := range messages[1:] {
		changes = append(changes, messages[1+i].Data)
		messages[1+i].Data = nil
	}
	return changed(data, changes)
}
