package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// thread is what a request works with: a thread as it was when it was read.
type thread struct {
	key  holdfast.ThreadKey
	head *holdfast.Head // nil for a thread that does not exist
	st   *state
	hist *history
}

// load reads a thread. Somebody else's thread is reported as not found.
func (e *Engine) load(ctx context.Context, who holdfast.Principal, id string) (*thread, error) {
	t, err := e.loadHead(ctx, who, id)
	if err != nil || t.head == nil {
		return t, err
	}
	if t.hist, err = e.loadHistory(ctx, t.key, t.st.Leaf); err != nil {
		return nil, err
	}
	t.hist.queued = map[string]bool{}
	for _, raw := range t.st.Queued {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			return nil, readError(err)
		}
		t.hist.queued[m.ID] = true
	}
	return t, nil
}

// last is the position of the thread's last record. Every acquisition writes
// a record, so the last one has the tag of the head's fence.
func (t *thread) last() holdfast.Cursor {
	if t.head.Next <= 1 {
		return holdfast.Cursor{}
	}
	return holdfast.Cursor{Number: t.head.Next - 1, Tag: t.head.Fence.Tag()}
}

func (e *Engine) loadHead(ctx context.Context, who holdfast.Principal, id string) (*thread, error) {
	t := &thread{key: holdfast.ThreadKey{Tenant: who.Tenant, Thread: id}}
	head, err := e.cfg.Store.Head(ctx, t.key)
	if errors.Is(err, holdfast.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return nil, readError(err)
	}
	if head.User != who.User {
		return nil, errThreadNotFound(id)
	}
	st, err := decodeState(head.State)
	if err != nil {
		return nil, readError(err)
	}
	t.head, t.st = head, st
	return t, nil
}

// stored reads a thread for the engine itself, whoever's it is.
func (e *Engine) stored(ctx context.Context, key holdfast.ThreadKey) (*thread, error) {
	head, err := e.cfg.Store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	st, err := decodeState(head.State)
	return &thread{key: key, head: head, st: st}, err
}

// existing is loadHead for a thread that must exist.
func (e *Engine) existing(ctx context.Context, who holdfast.Principal, id string) (*thread, error) {
	t, err := e.loadHead(ctx, who, id)
	if err == nil && t.head == nil {
		return nil, errThreadNotFound(id)
	}
	return t, err
}

// readUnlessMoved is readError for a commit, which may also be refused.
func readUnlessMoved(err error) error {
	var pub *holdfast.Error
	if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrFenced) || errors.As(err, &pub) {
		return err
	}
	if errors.Is(err, holdfast.ErrInvalid) {
		return holdfast.Errorf(holdfast.CodeInvalidInput, "These messages cannot be stored: an id is empty, too long or taken.").
			WithHint("Give each message an id of its own.").Wrap(err)
	}
	return readError(err)
}

func readError(err error) error {
	switch {
	case errors.Is(err, holdfast.ErrVersionTooNew):
		return errTooNew(err)
	case errors.Is(err, errNegative):
		return errCheckpointInvalid(err)
	case errors.Is(err, errUnreadable):
		return errCheckpointUnreadable(err)
	}
	return storeError(err)
}

// loadHistory reads the tree and follows it from the leaf to the first message.
func (e *Engine) loadHistory(ctx context.Context, key holdfast.ThreadKey, leaf string) (*history, error) {
	stored, err := e.cfg.Store.Messages(ctx, key)
	if err != nil {
		return nil, readError(err)
	}
	byID := make(map[string]int, len(stored))
	for i := range stored {
		byID[stored[i].ID] = i
	}
	var path []int
	for id := leaf; id != ""; {
		i, ok := byID[id]
		if !ok || len(path) > len(stored) {
			return nil, readError(fmt.Errorf("%w at %s", errHole, id))
		}
		path = append(path, i)
		id = stored[i].Parent
	}
	h := newHistory()
	for n := len(path) - 1; n >= 0; n-- {
		s := &stored[path[n]]
		m, err := agui.DecodeMessage(s.Data)
		if err != nil {
			return nil, readError(err)
		}
		h.add(m, s.Data)
	}
	for i := range stored {
		if _, on := h.index[stored[i].ID]; !on {
			m, err := agui.DecodeMessage(stored[i].Data)
			if err != nil {
				return nil, readError(err)
			}
			h.elsewhere[stored[i].ID] = m.Role
			h.noteCalls(&m)
		}
	}
	return h, nil
}

// checkStale compares the history with the one that a state was written for.
func checkStale(st *state, h *history) error {
	if st.Count == 0 || st.Count == len(h.path) {
		return nil
	}
	return errStale(len(h.path), st.Count)
}

// errHole: a message on the path is not there.
var errHole = errors.New("the message tree has a hole")

// shared returns the thread's shared state; nil when it has none.
func (e *Engine) shared(ctx context.Context, key holdfast.ThreadKey, id string) ([]byte, error) {
	if id == "" {
		return nil, nil
	}
	b, err := e.cfg.Store.Value(ctx, key, holdfast.KindBlob, id)
	if err != nil {
		return nil, readError(err)
	}
	return b, nil
}
