package simulate

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The way from a server to the store. Each call is a seam before the store, and one before
// the reply if that is held back.

// errLink is the error of a call that was not answered.
var errLink = errors.New("the connection to the store is broken")

// link is the store as one server sees it.
type link struct {
	world  *World
	server *server
	base   store.Store
	// cut and deaf hold all requests or all replies back until they are false again.
	cut, deaf atomic.Bool
}

// call makes one call of the store, which may write.
func call[T any](
	l *link, ctx context.Context, op string, key store.ThreadKey, writes bool, f func(context.Context) (T, error),
) (T, error) {
	var none T
	faults := []string{lost, late}
	if writes {
		faults = []string{lost, mute, late, twice}
	}
	name := l.server.name + " " + op
	if key.Thread != "" {
		name += " " + key.Thread
	}
	if who, ok := ctx.Value(asked{}).(string); ok {
		name += " for " + who
	}
	if l.server.isDead() {
		return none, errLink
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	verdict, let := l.world.gate.wait(ctx, &waiter{name: name, server: l.server, options: faults, linked: true})
	if writes && (!let || verdict == dead) { // it may still be under way
		l.world.astray(name, func() {
			_, _ = f(context.Background())
			l.world.changes.Add(1)
		})
	}
	switch {
	case !let:
		l.server.pass(context.Background(), "left "+name)
		return none, ctx.Err()
	case verdict == dead, verdict == lost:
		return none, errLink
	}
	// The request is carried out, whatever becomes of its context.
	result, err := f(context.WithoutCancel(ctx))
	if writes {
		l.world.changes.Add(1)
	}
	switch verdict {
	case twice:
		_, _ = f(context.WithoutCancel(ctx))
		l.world.changes.Add(1)
	case mute:
		return none, errLink
	case late:
		verdict, let := l.world.gate.wait(ctx,
			&waiter{name: name + " reply", server: l.server, options: []string{lost}, linked: true})
		if !let {
			l.server.pass(context.Background(), "left "+name)
			return none, ctx.Err()
		}
		if verdict != goOn {
			return none, errLink
		}
	}
	return result, err
}

// do is call for calls without a result.
func do(l *link, ctx context.Context, op string, key store.ThreadKey, f func(context.Context) error) error {
	_, err := call(l, ctx, op, key, true, func(ctx context.Context) (none struct{}, err error) {
		return none, f(ctx)
	})
	return err
}

// get is call for reads.
func get[T any](
	l *link, ctx context.Context, op string, key store.ThreadKey, f func(context.Context) (T, error),
) (T, error) {
	return call(l, ctx, op, key, false, f)
}

// Commit implements [store.Committer].
func (l *link) Commit(ctx context.Context, c *store.Commit) error {
	return do(l, ctx, "commit", c.Key, func(ctx context.Context) error { return l.world.commit(ctx, l.server, c) })
}

// Post implements [store.Committer].
func (l *link) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	return do(l, ctx, "post", key, func(ctx context.Context) error {
		err := l.base.Post(ctx, key, item)
		if err == nil {
			l.world.posted(key)
		}
		return err
	})
}

// Delete implements [store.Committer].
func (l *link) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	return do(l, ctx, "delete", key, func(ctx context.Context) error { return l.world.delete(ctx, key, at) })
}

// Head implements [store.Reader].
func (l *link) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	return get(l, ctx, "head", key, func(ctx context.Context) (*store.Head, error) { return l.base.Head(ctx, key) })
}

// Messages implements [store.Reader].
func (l *link) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	return get(l, ctx, "messages", key, func(ctx context.Context) ([]store.Message, error) {
		return l.base.Messages(ctx, key)
	})
}

// MessagesOf implements [store.Reader].
func (l *link) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	return get(l, ctx, "messages-of", key, func(ctx context.Context) ([]store.Message, error) {
		return l.base.MessagesOf(ctx, key, ids)
	})
}

// Records implements [store.Reader].
func (l *link) Records(
	ctx context.Context, key store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	return get(l, ctx, "records", key, func(ctx context.Context) ([]store.Record, error) {
		return l.base.Records(ctx, key, after, limit)
	})
}

// Inbox implements [store.Reader].
func (l *link) Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error) {
	return get(l, ctx, "inbox", key, func(ctx context.Context) ([]store.InboxItem, error) {
		return l.base.Inbox(ctx, key)
	})
}

// Size implements [store.Reader].
func (l *link) Size(ctx context.Context, key store.ThreadKey) (map[string]int64, error) {
	return get(l, ctx, "size", key, func(ctx context.Context) (map[string]int64, error) {
		return l.base.Size(ctx, key)
	})
}

// Threads implements [store.Directory].
func (l *link) Threads(
	ctx context.Context, owner holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	return get(l, ctx, "threads", store.ThreadKey{}, func(ctx context.Context) ([]store.Head, error) {
		return l.base.Threads(ctx, owner, before, limit)
	})
}

// Owned implements [store.Directory].
func (l *link) Owned(ctx context.Context) ([]store.OwnedThread, error) {
	return get(l, ctx, "owned", store.ThreadKey{}, l.base.Owned)
}

// walked is a page of Walk.
type walked struct {
	heads []store.Head
	next  string
}

// Walk implements [store.Directory].
func (l *link) Walk(ctx context.Context, after string, limit int) ([]store.Head, string, error) {
	p, err := get(l, ctx, "walk", store.ThreadKey{}, func(ctx context.Context) (p walked, err error) {
		p.heads, p.next, err = l.base.Walk(ctx, after, limit)
		return p, err
	})
	return p.heads, p.next, err
}

// Children implements [store.Directory].
func (l *link) Children(ctx context.Context, parent store.ThreadKey, after string, limit int) ([]string, error) {
	return get(l, ctx, "children", parent, func(ctx context.Context) ([]string, error) {
		return l.base.Children(ctx, parent, after, limit)
	})
}

// Announce implements [store.Presence].
func (l *link) Announce(ctx context.Context, process string, ttl time.Duration) error {
	return do(l, ctx, "announce", store.ThreadKey{}, func(ctx context.Context) error {
		return l.base.Announce(ctx, process, ttl)
	})
}

// Retire implements [store.Presence].
func (l *link) Retire(ctx context.Context, process string) error {
	return do(l, ctx, "retire", store.ThreadKey{}, func(ctx context.Context) error {
		err := l.base.Retire(ctx, process)
		if err == nil {
			l.world.departed(store.Departure{Process: process, Retired: true})
		}
		return err
	})
}

// Lease implements [store.Presence].
func (l *link) Lease(ctx context.Context, process string) (store.Lease, error) {
	return get(l, ctx, "lease "+process, store.ThreadKey{}, func(ctx context.Context) (store.Lease, error) {
		found, err := l.base.Lease(ctx, process)
		found.Gone = found.Gone || l.server.seen(process)
		return found, err
	})
}

// HandOver implements [store.Presence].
func (l *link) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	return do(l, ctx, "hand-over", key, func(context.Context) error {
		l.world.departed(store.Departure{Process: process, Thread: key})
		return nil
	})
}

// OnDeparture implements [store.Presence].
func (l *link) OnDeparture(_ string, f func(store.Departure)) (stop func()) {
	return l.server.listen(func(s *server) { s.onDeparture = f }, func(s *server) { s.onDeparture = nil })
}

// Watch implements [store.Notifier].
func (l *link) Watch(key store.ThreadKey) (<-chan struct{}, func()) {
	return l.world.watch(l.server, key)
}

// OnPost implements [store.Notifier].
func (l *link) OnPost(f func(store.ThreadKey)) (stop func()) {
	return l.server.listen(func(s *server) { s.onPost = f }, func(s *server) { s.onPost = nil })
}

// Reserve implements [store.Ledger].
func (l *link) Reserve(ctx context.Context, r *store.Reservation) error {
	return do(l, ctx, "reserve", store.ThreadKey{}, func(ctx context.Context) error {
		return l.world.reserve(ctx, l.base, r)
	})
}

// Settle implements [store.Ledger].
func (l *link) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	return do(l, ctx, "settle", store.ThreadKey{}, func(ctx context.Context) error {
		return l.world.settleLedger(ctx, l.base, tenant, id, actual)
	})
}

// Used implements [store.Ledger].
func (l *link) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	return get(l, ctx, "used", store.ThreadKey{}, func(ctx context.Context) ([]int64, error) {
		return l.base.Used(ctx, tenant, accounts)
	})
}

// PutHint implements [store.Hints].
func (l *link) PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error {
	return do(l, ctx, "hint "+name, store.ThreadKey{}, func(ctx context.Context) error {
		return l.base.PutHint(ctx, name, data, ttl)
	})
}

// Hints implements [store.Hints].
func (l *link) Hints(ctx context.Context) ([]store.Hint, error) {
	return get(l, ctx, "hints", store.ThreadKey{}, l.base.Hints)
}

// Close implements [store.Store].
func (l *link) Close() error { return nil }

// AgreeFormat implements [store.FormatKeeper].
func (l *link) AgreeFormat(ctx context.Context, process string, terms store.FormatTerms) (store.Formats, error) {
	return get(l, ctx, "format", store.ThreadKey{}, func(ctx context.Context) (store.Formats, error) {
		return l.base.(store.FormatKeeper).AgreeFormat(ctx, process, terms)
	})
}

// Formats implements [store.FormatKeeper].
func (l *link) Formats(ctx context.Context) (store.Formats, error) {
	return l.base.(store.FormatKeeper).Formats(ctx)
}

// Describe implements [store.Roster].
func (l *link) Describe(ctx context.Context, process string, about []byte) error {
	return do(l, ctx, "describe", store.ThreadKey{}, func(ctx context.Context) error {
		return l.base.(store.Roster).Describe(ctx, process, about)
	})
}

// Described implements [store.Roster].
func (l *link) Described(ctx context.Context) (map[string][]byte, error) {
	return get(l, ctx, "described", store.ThreadKey{}, func(ctx context.Context) (map[string][]byte, error) {
		said, err := l.base.(store.Roster).Described(ctx)
		for process := range said {
			if l.server.seen(process) {
				delete(said, process)
			}
		}
		return said, err
	})
}
