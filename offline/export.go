package offline

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/store"
)

// Export writes everything that a store holds of a thread to w, as one JSON document that
// people can read. It does not write to the store.
func Export(ctx context.Context, db store.Store, key store.ThreadKey, w io.Writer) error {
	d, err := audit.Export(ctx, db, key)
	if err != nil {
		return err
	}
	return d.Write(w)
}

// Import makes a thread from a document written by [Export], and returns its key; empty
// members of key are taken from the document. If the store already has that thread, the
// error is [store.ErrConflict]. Cursors of the old thread remain valid for the new one. A
// thread that was running when it was exported is stopped, with code cut_off; an
// empty-messages POST resumes it.
func Import(ctx context.Context, db store.Store, key store.ThreadKey, r io.Reader) (store.ThreadKey, error) {
	d, err := audit.ReadDocument(r)
	if err != nil {
		return key, err
	}
	key = store.ThreadKey{Tenant: cmp.Or(key.Tenant, d.Tenant), Thread: cmp.Or(key.Thread, d.Thread)}
	return key, audit.Import(ctx, db, key, d, time.Now(), clock.NewIDs(clock.Wall))
}

// Copy returns an in-memory store with a copy of one thread, to try something without
// leaving a trace. The caller must close it, or give it to a server through
// server.Config.OpenStore.
func Copy(ctx context.Context, db store.Store, key store.ThreadKey) (store.Store, error) {
	d, err := audit.Export(ctx, db, key)
	if err != nil {
		return nil, err
	}
	copied := memstore.New()
	if err := audit.Import(ctx, copied, key, d, time.Now(), clock.NewIDs(clock.Wall)); err != nil {
		return nil, err
	}
	return copied, nil
}
