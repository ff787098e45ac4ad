package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A Desk brings threads out of a server and into it, for their owners. Operators have the store
// itself, and use the functions of this package. The document of an owner is not trusted.

// DeskConfig is what a Desk needs. Every field must be set, except where it says otherwise.
type DeskConfig struct {
	Store store.Store // holds all threads
	// Limits are those of tenants and users; nil means that there are none.
	Limits *quota.Limiter
	Now    clock.Shared // the clock for stamps
	// NewID returns a random id, unique and unguessable; prefix says what it is for.
	NewID func(prefix string) string
	// CheckState returns an error for a shared state that a thread of that agent may not have.
	// Optional.
	CheckState func(ctx context.Context, agent string, state json.RawMessage) error
	// Audit logs what was brought in.
	Audit func(ctx context.Context, who holdfast.Principal, action, thread string, err error)
}

// Desk exports and imports threads.
type Desk struct {
	cfg  DeskConfig
	read thread.Reader
	// An export or an import has all of its thread in memory; an import, also the values that
	// its document only stands for. An export has its turn only while the thread is read, so
	// that a client that takes it slowly holds up nobody. Limits bounds the reading.
	exports, imports *turns.Turns
}

// atOnce is how many threads are exported at a time, and how many imported.
const atOnce = 4

// NewDesk returns a Desk.
func NewDesk(cfg DeskConfig) *Desk {
	return &Desk{cfg, thread.Reader{Store: cfg.Store}, turns.New(atOnce, 1), turns.New(atOnce, 1)}
}

// Export returns a function that writes a thread of the caller as a document.
func (d *Desk) Export(ctx context.Context, who holdfast.Principal, id string) (func(io.Writer) error, error) {
	t, err := d.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		size, err := d.read.Size(ctx, t.Key)
		if err != nil {
			return exportError(t.Key, err)
		}
		taken, err := d.cfg.Limits.HoldExport(who, size)
		if err != nil {
			return err
		}
		defer taken()
		document, err := d.document(ctx, who, t.Key)
		if err != nil {
			return err
		}
		return document.Write(w)
	}, nil
}

// document reads a thread when its turn has come.
func (d *Desk) document(ctx context.Context, who holdfast.Principal, key store.ThreadKey) (*Document, error) {
	done, err := d.exports.Take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer done()
	document, err := ExportShown(ctx, d.cfg.Store, key, who.User)
	if err != nil {
		return nil, exportError(key, err)
	}
	return document, nil
}

// exportError returns the error for a thread that cannot be exported.
func exportError(key store.ThreadKey, err error) error {
	if errors.Is(err, store.ErrConflict) {
		return holdfast.Errorf(codes.RunInProgress, "Thread %q changes while it is read.", key.Thread).
			WithHint("Export it when its run has ended.").With("threadId", key.Thread).Wrap(err)
	}
	return thread.ReadError(key, err)
}

// Import makes a thread of the caller out of a document. If id is empty it has the id that the
// document says or, if that is taken, a new one.
func (d *Desk) Import(ctx context.Context, who holdfast.Principal, id string, text []byte) (*threads.Info, error) {
	info, err := d.bring(ctx, who, id, text)
	made := id
	if info != nil {
		made = info.ID
	}
	d.cfg.Audit(ctx, who, "import", made, err)
	return info, err
}

func (d *Desk) bring(ctx context.Context, who holdfast.Principal, id string, text []byte) (*threads.Info, error) {
	done, err := d.imports.Take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer done()
	document, err := ReadDocument(bytes.NewReader(text))
	if err != nil {
		return nil, importError(err, id)
	}
	if err := agui.CheckID("threadId", cmp.Or(id, document.Thread)); err != nil {
		return nil, err
	}
	stored, err := d.cfg.Limits.Admit(ctx, who, true)
	if err != nil {
		return nil, err
	}
	ids := []string{cmp.Or(id, document.Thread)}
	if id == "" {
		ids = append(ids, d.cfg.NewID("thread"))
	}
	for _, id := range ids {
		key := store.ThreadKey{Tenant: who.Tenant, Thread: id}
		var t *thread.Thread
		if t, err = importForeign(ctx, d.cfg, key, who.User, document); err == nil {
			stored(true)
			d.cfg.Limits.Wrote(who, int64(len(text)))
			return t.Info(), nil
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	stored(false)
	return nil, importError(err, ids[0])
}

// importError returns the error for a document that cannot be imported.
func importError(err error, id string) error {
	var refused *holdfast.Error
	switch {
	case errors.As(err, &refused) && refused.Code == codes.StateInvalid:
		return refused
	case errors.Is(err, store.ErrConflict):
		return holdfast.Errorf(codes.ThreadExists, "There is a thread %q already.", id).
			WithHint("Leave threadId out to get a new one.").With("threadId", id)
	case errors.Is(err, store.ErrVersionTooNew):
		return holdfast.Errorf(codes.VersionTooNew, "The document is of a newer version than this server.").
			WithHint("Import it into a server of that version.").Wrap(err)
	case errors.Is(err, ErrDocument), errors.Is(err, store.ErrInvalid):
		reason := strings.TrimSuffix(strings.TrimPrefix(err.Error(), ErrDocument.Error()+": "), ".")
		return holdfast.Errorf(codes.InvalidInput, "The document cannot be imported: %s.", reason).
			WithHint("Send what GET /threads/{thread}/export or holdfast export has written, unchanged.").Wrap(err)
	}
	return thread.ReadError(store.ThreadKey{}, err)
}
