package upkeep

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Everybody lists the threads of all users of a tenant, for operators. Until the index has all of
// them, all heads of the store are looked at.
type Everybody struct{ Keeper *Keeper }

// everybodyPage is how many heads are looked at at a time.
const everybodyPage = 500

// Threads lists the tenant's threads, the most recently active first: at most limit of those
// that were last active before the given time (zero: all), each with its user.
func (e Everybody) Threads(ctx context.Context, tenant string, before time.Time, limit int) ([]threads.Info, error) {
	heads, err := e.heads(ctx, tenant, before, limit)
	if err != nil {
		return nil, thread.ReadError(store.ThreadKey{}, err)
	}
	heads = slices.DeleteFunc(heads, func(h store.Head) bool {
		return h.Unreadable != nil && h.User == "" // it is damaged, and nobody's
	})
	shown, err := e.Keeper.listed(ctx, heads, func(h *store.Head) holdfast.Principal {
		return holdfast.Principal{Tenant: tenant, User: h.User}
	})
	users := make(map[string]string, len(heads))
	for i := range heads {
		users[heads[i].Key.Thread] = heads[i].User
	}
	for i := range shown {
		shown[i].User = users[shown[i].ID]
	}
	return shown, err
}

// heads returns the heads of those threads.
func (e Everybody) heads(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	if e.Keeper.Index().Complete {
		return e.Keeper.cfg.Store.Everybody(ctx, tenant, before, limit)
	}
	return e.newest(ctx, tenant, before, limit)
}

// newest walks all heads and keeps those to list.
func (e Everybody) newest(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	var kept []store.Head
	cut := func() {
		slices.SortFunc(kept, func(a, b store.Head) int {
			return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.Thread, b.Key.Thread))
		})
		seen := map[string]bool{} // a walk may come upon a thread more than once
		kept = slices.DeleteFunc(kept, func(h store.Head) bool {
			again := seen[h.Key.Thread]
			seen[h.Key.Thread] = true
			return again
		})
		kept = kept[:min(len(kept), limit)]
	}
	for after := ""; ; {
		heads, next, err := e.Keeper.cfg.Store.Walk(ctx, after, everybodyPage)
		if err != nil && !errors.Is(err, store.ErrUnreadable) {
			return nil, err
		}
		for i := range heads {
			h := &heads[i]
			nobodys := h.Unreadable != nil && h.User == "" // it is damaged
			if h.Key.Tenant == tenant && !nobodys && (before.IsZero() || h.UpdatedAt.Before(before)) {
				kept = append(kept, *h)
			}
		}
		if cut(); next == "" {
			return kept, nil
		}
		after = next
	}
}
