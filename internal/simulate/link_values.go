package simulate

import (
	"context"

	"github.com/holdfast-agents/holdfast/store"
)

// Value implements [store.Reader].
func (l *link) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	return get(l, ctx, "value-"+string(kind), key, func(ctx context.Context) ([]byte, error) {
		return l.base.Value(ctx, key, kind, id)
	})
}

// ValuesOf implements [store.Reader].
func (l *link) ValuesOf(
	ctx context.Context, key store.ThreadKey, kind store.Kind, ids []string,
) ([]store.Value, error) {
	return get(l, ctx, "values-of-"+string(kind), key, func(ctx context.Context) ([]store.Value, error) {
		return l.base.ValuesOf(ctx, key, kind, ids)
	})
}

// Values implements [store.Reader].
func (l *link) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	return get(l, ctx, "values-"+string(kind), key, func(ctx context.Context) ([]store.Value, error) {
		return l.base.Values(ctx, key, kind, before, limit)
	})
}
