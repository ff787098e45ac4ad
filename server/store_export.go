package server

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/store"
)

// ExportThread writes everything that a store holds of a thread to w, as one JSON
// document that people can read. It does not write to the store.
func ExportThread(ctx context.Context, store store.Store, key store.ThreadKey, w io.Writer) error {
	d, err := audit.Export(ctx, store, key)
	if err != nil {
		return err
	}
	return d.Write(w)
}

// ImportThread makes a thread from a document written by [ExportThread], and returns
// its key; empty members of key are taken from the document. The store must not have
// that thread yet. Cursors of the old thread remain valid for the new one. A thread
// that was running when it was exported is stopped, with code cut_off; an
// empty-messages POST resumes it.
func ImportThread(ctx context.Context, store store.Store, key store.ThreadKey, r io.Reader) (store.ThreadKey, error) {
	d, err := audit.ReadDocument(r)
	if err != nil {
		return key, err
	}
	setDefault(&key.Tenant, d.Tenant)
	setDefault(&key.Thread, d.Thread)
	return key, audit.Import(ctx, store, key, d, time.Now(), newID(time.Now))
}
