package thread

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Path is the way from a thread's first message to a leaf, without the messages. Code that
// shows a history reads them along a Path, a few at a time: a history of many megabytes then
// takes no memory while a slow client reads it.
type Path []step

// step is a message on a Path: its id, and the size of its stored form in bytes.
type step struct {
	id    string
	bytes int
	data  []byte // the stored form, if it was read already; else nil
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
	}
	for i := range path {
		if total <= keptBytes {
			path[i].data = h.Raw[i]
		}
	}
	return path
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

// pageBytes is how many bytes of messages are read at a time, at least one message.
const pageBytes = 64 << 10

// Along reads the messages of a path, in order. After an error it yields nothing more.
func (rd Reader) Along(ctx context.Context, key store.ThreadKey, path Path) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for from := 0; from < len(path); {
			if data := path[from].data; data != nil {
				if from++; !yield(data, nil) {
					return
				}
				continue
			}
			var ids []string
			for size := 0; from < len(path) && (len(ids) == 0 || size+path[from].bytes <= pageBytes); from++ {
				ids = append(ids, path[from].id)
				size += path[from].bytes
			}
			messages, err := rd.Store.MessagesOf(ctx, key, ids)
			if err != nil {
				yield(nil, ReadError(key, err))
				return
			}
			for i := range messages {
				if !yield(messages[i].Data, nil) {
					return
				}
				messages[i].Data = nil
			}
		}
	}
}
