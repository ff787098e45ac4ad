package server

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/audit"
)

// ExportThread writes all that a store holds of a thread to w, as one JSON document
// that people can read. It writes nothing to the store.
func ExportThread(ctx context.Context, store holdfast.Store, key holdfast.ThreadKey, w io.Writer) error {
	d, err := audit.Export(ctx, store, key)
	if err != nil {
		return err
	}
	return d.Write(w)
}

// ImportThread makes a thread out of a document that [ExportThread] has written. What
// is empty in key is as in the document; the key that it got is returned. The store must
// have no such thread. Cursors of the old thread are good for the new one. A thread
// that ran when it was exported is stopped, with code cut_off: an empty-messages POST
// goes on with it.
func ImportThread(ctx context.Context, store holdfast.Store, key holdfast.ThreadKey, r io.Reader) (holdfast.ThreadKey, error) {
	d, err := audit.ReadDocument(r)
	if err != nil {
		return key, err
	}
	setDefault(&key.Tenant, d.Tenant)
	setDefault(&key.Thread, d.Thread)
	return key, audit.Import(ctx, store, key, d, time.Now(), newID(time.Now))
}
