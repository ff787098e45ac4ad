package simulate

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Find implements [store.Index].
func (l *link) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	return get(l, ctx, "find "+q.Name, store.ThreadKey{}, func(ctx context.Context) ([]store.Found, error) {
		return l.base.Find(ctx, q)
	})
}

// Everybody implements [store.Index].
func (l *link) Everybody(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	return get(l, ctx, "everybody", store.ThreadKey{}, func(ctx context.Context) ([]store.Head, error) {
		return l.base.Everybody(ctx, tenant, before, limit)
	})
}

// Owners implements [store.Index].
func (l *link) Owners(ctx context.Context) ([]store.Owner, error) {
	return get(l, ctx, "owners", store.ThreadKey{}, l.base.Owners)
}

// Mend implements [store.Index].
func (l *link) Mend(ctx context.Context, key store.ThreadKey) (int, error) {
	return get(l, ctx, "mend", key, func(ctx context.Context) (int, error) { return l.base.Mend(ctx, key) })
}

// Listed implements [store.Index].
func (l *link) Listed(ctx context.Context, key store.ThreadKey) ([]store.Listing, error) {
	return get(l, ctx, "listed", key, func(ctx context.Context) ([]store.Listing, error) {
		return l.base.Listed(ctx, key)
	})
}

// Progress implements [store.Index].
func (l *link) Progress(ctx context.Context, put []byte) ([]byte, error) {
	return get(l, ctx, "progress", store.ThreadKey{}, func(ctx context.Context) ([]byte, error) {
		return l.base.Progress(ctx, put)
	})
}
