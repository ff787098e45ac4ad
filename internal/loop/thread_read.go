package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// reader reads threads: the one way from a store to a thread.
type reader struct{ store holdfast.Reader }

// thread is what a request works with: a thread as it was when it was read.
type thread struct {
	key  holdfast.ThreadKey
	head *holdfast.Head // nil for a thread that does not exist
	st   *state
	hist *history
}

// load reads a thread. Somebody else's thread is reported as not found.
func (rd reader) load(ctx context.Context, who holdfast.Principal, id string) (*thread, error) {
	t, err := rd.find(ctx, who, id)
	if err != nil || t.head == nil {
		return t, err
	}
	if t.hist, err = rd.history(ctx, t.key, t.st.Leaf); err != nil {
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

func (rd reader) find(ctx context.Context, who holdfast.Principal, id string) (*thread, error) {
	t := &thread{key: holdfast.ThreadKey{Tenant: who.Tenant, Thread: id}}
	head, err := rd.store.Head(ctx, t.key)
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
func (rd reader) head(ctx context.Context, key holdfast.ThreadKey) (*thread, error) {
	head, err := rd.store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	st, err := decodeState(head.State)
	return &thread{key: key, head: head, st: st}, err
}

// existing is loadHead for a thread that must exist.
func (rd reader) existing(ctx context.Context, who holdfast.Principal, id string) (*thread, error) {
	t, err := rd.find(ctx, who, id)
	if err == nil && t.head == nil {
		return nil, errThreadNotFound(id)
	}
	return t, err
}

// loadHistory reads the tree and follows it from the leaf to the first message.
func (rd reader) history(ctx context.Context, key holdfast.ThreadKey, leaf string) (*history, error) {
	stored, err := rd.store.Messages(ctx, key)
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
func (rd reader) shared(ctx context.Context, key holdfast.ThreadKey, id string) ([]byte, error) {
	if id == "" {
		return nil, nil
	}
	b, err := rd.store.Value(ctx, key, holdfast.KindBlob, id)
	if err != nil {
		return nil, readError(err)
	}
	return b, nil
}

// size returns how many bytes the thread takes.
func (rd reader) size(ctx context.Context, key holdfast.ThreadKey) (total int64, err error) {
	size, err := rd.store.Size(ctx, key)
	if err != nil {
		return 0, readError(err)
	}
	for _, n := range size {
		total += n
	}
	return total, nil
}

func (rd reader) run(ctx context.Context, key holdfast.ThreadKey, id string) (*runRecord, error) {
	raw, err := rd.store.Value(ctx, key, holdfast.KindRun, id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, errRunNotFound(key.Thread, id)
	}
	if err != nil {
		return nil, readError(err)
	}
	rec := &runRecord{}
	if err := decodeValue(raw, rec); err != nil {
		return nil, readError(err)
	}
	return rec, nil
}

// ended returns the run's outcome; nil while it runs.
func (rd reader) runEnd(ctx context.Context, key holdfast.ThreadKey, run string) (*runOutcome, error) {
	raw, err := rd.store.Value(ctx, key, holdfast.KindOutcome, run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, readError(err)
	}
	var o runOutcome
	if err := decodeValue(raw, &o); err != nil {
		return nil, readError(err)
	}
	return &o, nil
}

// intents returns the calls that have been announced and have no result yet.
func (rd reader) intents(ctx context.Context, key holdfast.ThreadKey) (map[string]bool, error) {
	values, err := rd.store.Values(ctx, key, holdfast.KindIntent, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	calls := make(map[string]bool, len(values))
	for _, v := range values {
		calls[v.ID] = true
	}
	return calls, nil
}

// loadReuse reads what is left to use; only a thread that went back has any.
func (rd reader) recorded(ctx context.Context, key holdfast.ThreadKey, st *state) (map[string][]holdfast.Value, error) {
	if !st.Reuse {
		return nil, nil
	}
	values, err := rd.store.Values(ctx, key, holdfast.KindReuse, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	slices.Reverse(values) // oldest first
	left := map[string][]holdfast.Value{}
	for _, v := range values {
		hash, _, _ := bytes.Cut([]byte(v.ID), []byte("/"))
		left[string(hash)] = append(left[string(hash)], v)
	}
	return left, nil
}

// pendingWrites returns the finished results that no checkpoint holds yet, in the
// order in which they finished.
func (rd reader) pendingWrites(ctx context.Context, t *thread) ([]holdfast.PendingWrite, error) {
	values, err := rd.store.Values(ctx, t.key, holdfast.KindPending, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	if len(values) == 0 {
		return nil, nil
	}
	hist, err := rd.history(ctx, t.key, t.st.Leaf)
	if err != nil {
		return nil, err
	}
	var list []holdfast.PendingWrite
	for _, v := range values {
		var p pendingWrite
		if err := decodeValue(v.Data, &p); err != nil {
			return nil, readError(err)
		}
		w := holdfast.PendingWrite{
			CallID: p.CallID, Tool: p.Tool, Message: p.Message, Failed: p.Failed, Iteration: p.Iteration,
			ThreadID: t.key.Thread, CompletedAt: p.CompletedAt,
		}
		if i, ok := hist.index[p.Message]; ok {
			w.Result = hist.path[i].Content
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b holdfast.PendingWrite) int { return hist.index[a.Message] - hist.index[b.Message] })
	return list, nil
}

func (rd reader) stateSnapshot(ctx context.Context, key holdfast.ThreadKey, id string) ([]byte, error) {
	state, err := rd.shared(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if state == nil {
		state = []byte("{}")
	}
	return agui.AppendStateSnapshot(nil, agui.Base{}, state), nil
}

// place is where a thread stands, for the observer.
func (t *thread) place() holdfast.Iteration {
	return holdfast.Iteration{
		Agent: t.st.Agent, Principal: holdfast.Principal{Tenant: t.key.Tenant, User: t.head.User},
		Thread: t.key.Thread, Run: t.st.Run, Number: t.st.Iteration,
	}
}

func (t *thread) info() *holdfast.ThreadInfo {
	info := &holdfast.ThreadInfo{
		ID: t.key.Thread, Agent: t.st.Agent, Status: holdfast.ThreadStatus(t.st.Phase), Run: t.st.Run,
		Outcome: t.st.Outcome, Code: t.st.Code, Iteration: t.st.Iteration, Cursor: t.last().String(),
		PendingToolCalls: t.st.pendingFrontend(), UpdatedAt: t.head.UpdatedAt, ETag: t.head.ETag,
	}
	if o := t.st.Origin; o != nil {
		info.Parent, info.ParentCheckpoint = o.Thread, o.Checkpoint
	}
	for _, i := range t.st.interrupts() {
		info.Interrupts = append(info.Interrupts, i.ID)
	}
	return info
}
