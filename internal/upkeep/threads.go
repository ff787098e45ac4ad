package upkeep

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Threads lists the caller's threads, last active first: at most limit of those that were
// last active before the given time (zero: all).
func (k *Keeper) Threads(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) ([]threads.Info, error) {
	heads, err := k.cfg.Store.Threads(ctx, who, before, limit)
	if err != nil {
		return nil, thread.ReadError(store.ThreadKey{}, err)
	}
	return k.listed(ctx, heads, func(*store.Head) holdfast.Principal { return who })
}

// readsAtOnce is how many of a list's threads are read at a time: a store may be far away.
const readsAtOnce = 16

// listed describes the threads of a list, of whose heads the store knows this much. It leaves out those
// that are not there, or not the user's who is to have them.
func (k *Keeper) listed(
	ctx context.Context, heads []store.Head, whose func(*store.Head) holdfast.Principal,
) ([]threads.Info, error) {
	read, failed := make([]*threads.Info, len(heads)), make([]error, len(heads))
	routine.Each(len(heads), readsAtOnce, func(i int) {
		h := &heads[i]
		failed[i] = routine.Caught(func() (err error) {
			err = h.Unreadable
			if err == nil {
				read[i], err = k.info(ctx, whose(h), h.Key.Thread)
			}
			if err != nil {
				read[i], err = inList(h, err)
			}
			return err
		})
	})
	list := make([]threads.Info, 0, len(heads))
	for i, info := range read {
		if failed[i] != nil {
			return nil, failed[i]
		}
		if info != nil {
			list = append(list, *info)
		}
	}
	return list, nil
}

// Thread describes one thread, with its size in bytes.
func (k *Keeper) Thread(ctx context.Context, who holdfast.Principal, id string) (*threads.Info, error) {
	info, err := k.info(ctx, who, id)
	if err != nil {
		return nil, err
	}
	info.Size, err = k.cfg.Store.Size(ctx, store.ThreadKey{Tenant: who.Tenant, Thread: id})
	if err != nil {
		return nil, thread.ReadError(store.ThreadKey{Tenant: who.Tenant, Thread: id}, err)
	}
	return info, nil
}

// info describes one thread.
func (k *Keeper) info(ctx context.Context, who holdfast.Principal, id string) (*threads.Info, error) {
	t, err := k.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return t.Info(), nil
}

// Messages returns the thread's history, each message as AG-UI 1.0 JSON. They are read a
// few at a time, as they are used; after an error there are no more.
func (k *Keeper) Messages(
	ctx context.Context, who holdfast.Principal, id string,
) (iter.Seq2[json.RawMessage, error], error) {
	t, path, err := k.read.LoadPath(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return func(yield func(json.RawMessage, error) bool) {
		for m, err := range k.read.Along(ctx, t.Key, path) {
			if !yield(m, err) {
				return
			}
		}
	}, nil
}
