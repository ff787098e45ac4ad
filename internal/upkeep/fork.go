package upkeep

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A fork: what of a thread it takes along, and how that is read of one moment while the thread may change.

// Fork begins a new thread where another one stands, or stood. It copies the path of the
// history. The other thread does not change, and may be running.
func (k *Keeper) Fork(
	ctx context.Context, who holdfast.Principal, id string, to threads.Travel,
) (*threads.Traveled, error) {
	if to.Thread == id {
		return nil, errThreadExists(id)
	}
	if to.Thread == "" {
		to.Thread = k.cfg.NewID("thread")
	}
	return again(func() (*threads.Traveled, error) { return k.tryFork(ctx, who, id, to) })
}

// tryFork is one try of Fork. It returns ErrConflict if the thread has moved meanwhile, so
// that something of it is gone.
func (k *Keeper) tryFork(
	ctx context.Context, who holdfast.Principal, id string, to threads.Travel,
) (_ *threads.Traveled, err error) {
	t, err := k.engine.Current(ctx, who, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = k.orMoved(ctx, t, err) }()
	if seen(to.ETag, t.Head.ETag) {
		return nil, errETag(to.ETag, t.Head.ETag)
	}
	if to.Checkpoint == "" {
		if t.History, err = k.read.History(ctx, t.Key, t.State.Leaf); err != nil {
			return nil, err
		}
	}
	d, err := k.depart(ctx, t, to, true)
	if err != nil {
		return nil, err
	}
	out := &threads.Traveled{}
	c := &store.Commit{
		Key:       store.ThreadKey{Tenant: t.Key.Tenant, Thread: to.Thread},
		ID:        k.cfg.NewID("c"),
		Expect:    store.Position{Next: 1},
		User:      t.Head.User,
		Fence:     store.Fence{Epoch: 1, Nonce: k.cfg.NewID("")},
		UpdatedAt: k.cfg.Now().Time(),
		Parent:    id,
	}
	if err := k.copyTo(ctx, c, t, d); err != nil {
		return nil, err
	}
	cp := thread.Checkpoint{Source: thread.SourceFork, Step: d.st.Iteration, Parent: d.from, ParentThread: id}
	k.arrive(c, d, cp, out)
	out.Checkpoint.RunStartedAt = k.runStart(ctx, t.Key, out.Checkpoint.Run)
	child := &thread.Thread{Key: c.Key, Head: thread.HeadAfter(c), State: d.st}
	out.Thread = *child.Info()
	if to.Preview {
		preview(out, t)
		return out, nil
	}
	if err := errors.Join(absent(ctx, k.cfg.Store, c.Key), stands(ctx, k.cfg.Store, t)); err != nil {
		return nil, err
	}
	stored, err := k.cfg.Limits.Admit(ctx, who, true)
	if err != nil {
		return nil, err
	}
	err = k.engine.Commit(ctx, child.Place(), c)
	stored(err == nil)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) {
		return nil, errThreadExists(to.Thread)
	}
	if err != nil {
		return nil, thread.ReadUnlessMoved(t.Key, err)
	}
	k.cfg.Limits.Wrote(who, d.st.Bytes)
	k.counting.measureSoon(c.Key)
	k.cfg.Log.Info("thread forked", "thread", id, "fork", to.Thread, "checkpoint", to.Checkpoint, "message", to.Message)
	return out, nil
}

// stands makes sure that a thread that did not run when it was read has not changed since: what was read
// of it, one after the other, is of one moment.
func stands(ctx context.Context, s store.Store, t *thread.Thread) error {
	if t.State.Running() {
		return nil // it changes all the time
	}
	now, err := s.Head(ctx, t.Key)
	if err != nil {
		return thread.ReadError(t.Key, err)
	}
	if now.Position() != t.Head.Position() {
		return store.ErrConflict
	}
	return nil
}

// absent makes sure that there is no such thread yet, before anything is written. The commit finds out if
// another one makes it meanwhile.
func absent(ctx context.Context, s store.Store, key store.ThreadKey) error {
	switch _, err := s.Head(ctx, key); {
	case err == nil:
		return errThreadExists(key.Thread)
	case !errors.Is(err, store.ErrNotFound):
		return thread.ReadError(key, err)
	}
	return nil
}

// copyTo adds to the commit c what a fork needs of the thread: the path, the blobs that
// the state refers to, and the run to continue.
func (k *Keeper) copyTo(ctx context.Context, c *store.Commit, t *thread.Thread, d *departure) error {
	parent := ""
	for i := range d.hist.Path {
		id := d.hist.Path[i].ID
		c.Messages = append(c.Messages, store.Message{ID: id, Parent: parent, Data: d.hist.Raw[i]})
		parent = id
	}
	blobs, err := k.read.Blobs(ctx, t.Key, d.st)
	if err != nil {
		return err
	}
	c.Put = append(c.Put, blobs...)
	rec, err := k.read.Run(ctx, t.Key, d.st.Run())
	if err != nil {
		return err
	}
	rec.After = store.Cursor{}
	c.Put = append(c.Put, store.Value{Kind: store.KindRun, ID: rec.ID, Data: thread.MustJSON(rec)})
	end := d.st.RunEnd(k.cfg.Now().Time(), 0)
	end.Usage = nil // the other thread has used it
	thread.PutRunEnd(c, rec.ID, end)
	d.st.Incarnate(t.Key, t.Head.User, k.cfg.NewID(""))
	d.st.Origin = &thread.Origin{Thread: t.Key.Thread, Checkpoint: d.from, Incarnation: t.State.Incarnation}
	d.st.Hidden, d.st.CreatedAt = false, k.cfg.Now().UTC()
	d.st.Boundary, d.st.Steps = store.Cursor{}, nil
	d.st.Checkpoints, d.st.Bytes, d.st.Rewinds, d.st.Rewound = 0, 0, 0, 0
	return nil
}

// errThreadExists says that a fork cannot have this id.
func errThreadExists(id string) *holdfast.Error {
	return holdfast.Errorf(codes.ThreadExists, "There is a thread %q already.", id).
		WithHint("Leave threadId out to get a new one.").With("threadId", id)
}
