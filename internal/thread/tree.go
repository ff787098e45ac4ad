package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// The tree of a thread's messages, read from the store, and the path through it that a run sees.

// History reads the message tree and follows it from the leaf back to the first message.
func (rd Reader) History(ctx context.Context, key store.ThreadKey, leaf string) (*History, error) {
	u, err := rd.Undecoded(ctx, key, leaf)
	if err != nil {
		return nil, err
	}
	return u.Decode()
}

// Undecoded is a history that was read, and is known to be whole, but not what it says.
type Undecoded struct {
	Messages int // how many the path has

	key    store.ThreadKey
	stored []store.Message
	path   []int // the places of the path's messages in stored
}

// Undecoded does the first part of [Reader.History], which takes a third of the time.
func (rd Reader) Undecoded(ctx context.Context, key store.ThreadKey, leaf string) (*Undecoded, error) {
	stored, err := rd.Store.Messages(ctx, key)
	if err != nil {
		return nil, ReadError(key, err)
	}
	path, err := pathTo(key, stored, leaf)
	if err != nil {
		return nil, err
	}
	return &Undecoded{len(path), key, stored, path}, nil
}

// moreMessages is for how many messages more than it has a history has room at once.
const moreMessages = 8

// Decode does the second part.
func (u *Undecoded) Decode() (*History, error) {
	h, stored := NewHistory(), u.stored
	h.Path, h.Raw = make([]agui.Message, 0, len(u.path)+moreMessages), make([][]byte, 0, len(u.path)+moreMessages)
	h.Index = make(map[string]int, len(u.path)+moreMessages)
	for _, place := range u.path {
		s := &stored[place]
		m, err := decodeMessage(s)
		if err != nil {
			return nil, ReadError(u.key, err)
		}
		h.Add(m, s.Data)
	}
	if len(u.path) == len(stored) {
		return h, nil // there are no other branches
	}
	for i := range stored {
		if _, on := h.Index[stored[i].ID]; !on {
			m, err := decodeMessage(&stored[i])
			if err != nil {
				return nil, ReadError(u.key, err)
			}
			h.Elsewhere[stored[i].ID], h.Parents[stored[i].ID] = m.Role, stored[i].Parent
			if m.Role == string(holdfast.RoleUser) {
				h.Said[stored[i].ID] = stored[i].Data
			}
			h.noteCalls(&m)
		}
	}
	return h, nil
}

// decodeMessage decodes a stored message.
func decodeMessage(s *store.Message) (agui.Message, error) {
	m, err := agui.DecodeStored(s.Data)
	if err != nil {
		err = fmt.Errorf("message %s: %w: %w", s.ID, ErrUnreadable, err)
	}
	return m, err
}

// pathTo returns the places of the messages from the first to the leaf. Most messages follow the
// one that was stored before them.
func pathTo(key store.ThreadKey, stored []store.Message, leaf string) ([]int, error) {
	var byID map[string]int
	backwards := make([]int, 0, len(stored))
	before := len(stored) - 1
	for id := leaf; id != ""; {
		i, ok := before, before >= 0 && stored[before].ID == id
		if !ok {
			if byID == nil {
				byID = placesOf(stored)
			}
			i, ok = byID[id]
		}
		if !ok || len(backwards) == len(stored) {
			return nil, ReadError(key, fmt.Errorf("%w at %s", ErrHole, id))
		}
		backwards = append(backwards, i)
		id, before = stored[i].Parent, i-1
	}
	slices.Reverse(backwards)
	return backwards, nil
}

// placesOf returns the places of the messages, by id.
func placesOf(stored []store.Message) map[string]int {
	byID := make(map[string]int, len(stored))
	for i := range stored {
		byID[stored[i].ID] = i
	}
	return byID
}

// Result reads the answer that is the result of the thread's last run; nil if there is none.
func (rd Reader) Result(ctx context.Context, t *Thread) (json.RawMessage, error) {
	if t.State.Output == "" {
		return nil, nil
	}
	found, err := rd.Store.MessagesOf(ctx, t.Key, []string{t.State.Output})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	m, err := decodeMessage(&found[0])
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	return ResultOf(&m), nil
}
