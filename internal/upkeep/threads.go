package upkeep

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
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
	list := make([]threads.Info, 0, len(heads))
	for i := range heads {
		info, err := k.listed(ctx, who, &heads[i])
		if err != nil {
			return nil, err
		}
		if info != nil {
			list = append(list, *info)
		}
	}
	return list, nil
}

// listed describes a thread in a list, of whose head the store knows this much: nil for
// one that is not there, or is somebody else's. One that cannot be read is listed too.
func (k *Keeper) listed(ctx context.Context, who holdfast.Principal, h *store.Head) (*threads.Info, error) {
	err := h.Unreadable
	if err == nil {
		var info *threads.Info
		if info, err = k.info(ctx, who, h.Key.Thread); err == nil {
			return info, nil
		}
	}
	err = thread.ReadError(h.Key, err)
	pub := holdfast.AsError(err)
	switch {
	case pub.Code == codes.NotFound:
		return nil, nil
	case !thread.Unreadable(err):
		return nil, err
	}
	return &threads.Info{
		ID:        h.Key.Thread,
		Status:    threads.StatusUnreadable,
		Code:      pub.Code,
		Text:      agui.FullText(pub),
		UpdatedAt: h.UpdatedAt,
		ETag:      thread.PublicETag(h.ETag),
	}, nil
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
