package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Threads lists the caller's threads, last active first, of those active
// before the given time (zero: all).
func (k *Keeper) Threads(ctx context.Context, who holdfast.Principal, before time.Time, limit int) ([]holdfast.ThreadInfo, error) {
	heads, err := k.cfg.Store.Threads(ctx, who, before, limit)
	if err != nil {
		return nil, readError(err)
	}
	list := make([]holdfast.ThreadInfo, 0, len(heads))
	for i := range heads {
		info, err := k.info(ctx, who, heads[i].Key.Thread)
		var pub *holdfast.Error
		if errors.As(err, &pub) && pub.Code == holdfast.CodeNotFound {
			continue // the list is a hint
		}
		if err != nil {
			return nil, err
		}
		list = append(list, *info)
	}
	return list, nil
}

// Thread describes one thread, with its size.
func (k *Keeper) Thread(ctx context.Context, who holdfast.Principal, id string) (*holdfast.ThreadInfo, error) {
	info, err := k.info(ctx, who, id)
	if err != nil {
		return nil, err
	}
	info.Size, err = k.cfg.Store.Size(ctx, holdfast.ThreadKey{Tenant: who.Tenant, Thread: id})
	if errors.Is(err, holdfast.ErrNotFound) { // deleted meanwhile
		return nil, errThreadNotFound(id)
	}
	if err != nil {
		return nil, readError(err)
	}
	return info, nil
}

func (k *Keeper) info(ctx context.Context, who holdfast.Principal, id string) (*holdfast.ThreadInfo, error) {
	t, err := k.read.existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return t.info(), nil
}

// Messages returns the thread's history, each message as AG-UI 1.0 JSON.
func (k *Keeper) Messages(ctx context.Context, who holdfast.Principal, thread string) ([]json.RawMessage, error) {
	t, err := k.read.load(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	if t.head == nil {
		return nil, errThreadNotFound(thread)
	}
	out := make([]json.RawMessage, 0, len(t.hist.raw))
	for _, m := range t.hist.raw {
		out = append(out, m)
	}
	return out, nil
}
