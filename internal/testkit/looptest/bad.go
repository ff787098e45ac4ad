package looptest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Bad is a store in which one thread is bad, as it might be in a file or in Redis. It is
// good until the test says what is wrong.
type Bad struct {
	store.Store
	Key store.ThreadKey // of the bad thread
	// Unreadable is why its head cannot be read.
	Unreadable atomic.Pointer[error]
	// Panics makes every reader of its messages or its size panic, as unforeseen values may.
	Panics atomic.Bool
}

// Break makes the head unreadable.
func (b *Bad) Break(err error) { b.Unreadable.Store(&err) }

// why returns why the head of the thread cannot be read; nil if it can.
func (b *Bad) why(key store.ThreadKey) error {
	if err := b.Unreadable.Load(); err != nil && key == b.Key {
		return *err
	}
	return nil
}

// Head implements [store.Reader].
func (b *Bad) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	h, err := b.Store.Head(ctx, key)
	if why := b.why(key); err == nil && why != nil {
		return &store.Head{Key: key, User: h.User}, why
	}
	return h, err
}

// Messages implements [store.Reader].
func (b *Bad) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	if b.Panics.Load() && key == b.Key {
		panic("a message that nobody has foreseen")
	}
	return b.Store.Messages(ctx, key)
}

// Size implements [store.Reader].
func (b *Bad) Size(ctx context.Context, key store.ThreadKey) (map[string]int64, error) {
	if b.Panics.Load() && key == b.Key {
		panic("a size that nobody has foreseen")
	}
	return b.Store.Size(ctx, key)
}

// Threads implements [store.Directory].
func (b *Bad) Threads(
	ctx context.Context, owner holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	heads, err := b.Store.Threads(ctx, owner, before, limit)
	for i := range heads {
		if why := b.why(heads[i].Key); why != nil {
			heads[i] = store.Head{
				Key:        b.Key,
				User:       owner.User,
				UpdatedAt:  heads[i].UpdatedAt.Truncate(time.Minute),
				Unreadable: why,
			}
		}
	}
	return heads, err
}

// Everybody implements [store.Index].
func (b *Bad) Everybody(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	heads, err := b.Store.Everybody(ctx, tenant, before, limit)
	for i := range heads {
		if why := b.why(heads[i].Key); why != nil {
			heads[i] = store.Head{Key: b.Key, Unreadable: why}
		}
	}
	return heads, err
}

// Walk implements [store.Directory].
func (b *Bad) Walk(ctx context.Context, after string, limit int) ([]store.Head, string, error) {
	heads, next, err := b.Store.Walk(ctx, after, limit)
	for i := range heads {
		if why := b.why(heads[i].Key); why != nil {
			heads[i] = store.Head{Key: b.Key, Unreadable: why}
		}
	}
	return heads, next, err
}

// Delete implements [store.Committer].
func (b *Bad) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	if b.why(key) != nil && at == (store.Position{}) {
		h, err := b.Store.Head(ctx, key)
		if err != nil {
			return err
		}
		at = h.Position()
	}
	return b.Store.Delete(ctx, key, at)
}
