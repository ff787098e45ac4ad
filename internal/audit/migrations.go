package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Migrations says what the stored states of a thread need before the agents can continue
// it: which migrations will run when a state is next read, which of them do not exist, and
// which states are newer than the agents know (From above To). It looks at the head and at
// every listed checkpoint, which a thread can go back to, and reports each state and
// version once. Nothing is written. A thread of an agent that is not in schemas needs
// nothing.
func Migrations(
	ctx context.Context, db store.Reader, key store.ThreadKey, schemas map[string]*state.Schema,
) ([]state.PendingMigration, error) {
	head, err := db.Head(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", key, err)
	}
	st, err := thread.DecodeState(head.State)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", key, err)
	}
	states := []*thread.State{st}
	values, err := db.Values(ctx, key, store.KindCheckpoint, "", 0)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", key, err)
	}
	for _, v := range values {
		if cp, err := thread.DecodeCheckpoint(v.Data); err == nil {
			states = append(states, cp.State)
		}
	}
	var out []state.PendingMigration
	seen := map[state.VersionChange]bool{}
	for _, st := range states {
		s := schemas[st.Agent]
		if s == nil || len(st.States) == 0 {
			continue
		}
		info, err := thread.ReadSchema(ctx, db, key, st)
		if err != nil {
			return nil, err
		}
		for _, m := range s.Migrations(s.Restore(info, st.Values(info), nil)) {
			if !seen[m.VersionChange] {
				seen[m.VersionChange] = true
				out = append(out, m)
			}
		}
	}
	return out, nil
}

// StoredStates returns the middleware's states as the thread's newest checkpoint has them;
// nil for a thread without a checkpoint. Nothing of them is redacted; they are decoded and
// migrated when they are read.
func StoredStates(ctx context.Context, db store.Reader, key store.ThreadKey) (*state.States, error) {
	newest, err := db.Values(ctx, key, store.KindCheckpoint, "", 1)
	if errors.Is(err, store.ErrNotFound) || err == nil && len(newest) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints of thread %s: %w", key, err)
	}
	cp, err := thread.DecodeCheckpoint(newest[0].Data)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s of thread %s: %w", newest[0].ID, key, err)
	}
	info, err := thread.ReadSchema(ctx, db, key, cp.State)
	if err != nil {
		return nil, err
	}
	return thread.EmptySchema().Restore(info, cp.State.Values(info), nil), nil
}
