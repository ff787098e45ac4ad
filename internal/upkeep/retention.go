package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Retention is what the server removes by itself: it archives a log that a dead process left, deletes
// the thread, or prunes it. The index says for which threads something is due (due.go), and a walk comes
// past all of them as a net (walk.go). Both call tend, which does for one thread all that is due.

// Retention is what the server removes by itself. A zero field removes nothing.
type Retention struct {
	// Every is how often each process looks at a page of threads; 0 means never.
	Every time.Duration
	// Due is how often one process that is alone looks for threads for which something is due
	// now; 0 means never. With more processes, each looks less often.
	Due time.Duration
	// Checkpoints is the age at which checkpoints are removed, except each thread's newest.
	Checkpoints time.Duration
	// Threads is how long an idle thread stays after its last run. Then all of it is removed
	// together.
	Threads time.Duration
	// PruneBytes is the size in bytes above which a thread that does not run is pruned to its
	// newest checkpoint.
	PruneBytes int64
}

// retaining does what is due for one thread.
type retaining struct{ k *Keeper }

// tended is what retention has done for a thread.
type tended struct {
	removed threads.Cleaned
	// goesOn means that the thread waits for nothing but a run.
	goesOn bool
	// stored means that the thread was changed, so that it is in other lists now, or in none.
	stored bool
	// estimated means that the thread's size is not what was measured.
	estimated bool
}

// tend does what is due for a thread that nobody works on, and has the thread's state say so.
// agentGone means that no run goes on with it.
func (r retaining) tend(ctx context.Context, key store.ThreadKey, agentGone bool) (tended, error) {
	did, err := r.tendLocked(ctx, key, agentGone)
	if err == nil && did.removed.Threads == 0 && (did.stored || did.estimated) {
		r.k.counting.measure(ctx, key)
	}
	return did, err
}

func (r retaining) tendLocked(ctx context.Context, key store.ThreadKey, agentGone bool) (did tended, err error) {
	defer r.k.engine.Lock(key)()
	t, err := r.k.read.Head(ctx, key)
	if err != nil {
		return did, err
	}
	now, keep := r.k.cfg.Now(), r.k.cfg.Retention
	idle := now.Age(t.Head.UpdatedAt)
	waits := t.State.GoesOn(now.Time())
	did.goesOn = waits && !agentGone
	if t.State.Running() || t.Head.Process != "" || idle < r.k.cfg.ArchiveAfter {
		return did, nil
	}
	if keep.Threads > 0 && idle > keep.Threads && !did.goesOn && (waits || rests(t.State)) {
		err := r.k.cfg.Store.Delete(ctx, key, t.Head.Position())
		if err == nil {
			did.removed.Threads, did.stored = 1, true
			r.k.cfg.Limits.Deleted(t.Place().Principal, t.State.Bytes)
		}
		return did, err
	}
	did.estimated = !t.State.Measured
	if !thread.Tidy(&t.State.Tended, t.Head.Next) {
		if t, err = r.archived(ctx, t, &did); err != nil {
			return did, err
		}
	}
	c, err := r.tidying(ctx, t, &did)
	if err != nil || c == nil {
		return did, err
	}
	did.stored = true
	return did, r.k.engine.Commit(ctx, t.Place(), c)
}

// archived archives the thread's log, and returns the thread as it is then.
func (r retaining) archived(ctx context.Context, t *thread.Thread, did *tended) (*thread.Thread, error) {
	c, st, err := r.k.archiving(ctx, t)
	if err != nil || c == nil {
		return t, err
	}
	if err := r.k.engine.Commit(ctx, t.Place(), c); err != nil {
		return t, err
	}
	did.stored = true
	return &thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: st}, nil
}

// tidying returns the commit that removes what is due of a thread, and has retention leave the thread
// alone until more is; nil if there is nothing to store.
func (r retaining) tidying(ctx context.Context, t *thread.Thread, did *tended) (*store.Commit, error) {
	st := t.State.Clone()
	st.Tidied = t.Head.Next
	var c *store.Commit
	if !did.goesOn {
		var err error
		if c, err = r.pruned(ctx, t, st, did); err != nil {
			return nil, err
		}
	}
	if c == nil && st.Tended == t.State.Tended {
		return nil, nil
	}
	if c == nil {
		c = r.k.cfg.amendUnseen(t)
	}
	thread.Save(c, st)
	return c, nil
}

// pruned returns the commit that prunes a thread, whose state is st afterwards; nil if there is nothing
// to remove.
func (r retaining) pruned(ctx context.Context, t *thread.Thread, st *thread.State, did *tended) (*store.Commit, error) {
	large, err := r.largerThan(ctx, t.Key, st.Bytes)
	if err != nil || !large && !r.mayBeAged(st) {
		return nil, err
	}
	p, now, limit := pruning{k: r.k, t: t}, r.k.cfg.Now(), r.k.cfg.Retention.Checkpoints
	c, err := p.commit(ctx, func(_ int, cp *thread.Checkpoint) bool {
		return !large && now.Age(cp.CreatedAt) <= limit
	})
	if err != nil {
		return nil, err
	}
	thread.NoteKept(&st.Tended, p.oldest, len(p.kept) <= 2) // the head and one checkpoint
	if c == nil || p.checkpoints == 0 && !large {
		return nil, nil
	}
	did.removed.Checkpoints, did.removed.Messages = p.checkpoints, len(p.forget)
	return c, nil
}

// goOn goes on with a thread that waits for nothing but a run. One whose agent is gone waits in vain,
// so it may be too old.
func (r retaining) goOn(ctx context.Context, key store.ThreadKey) (tended, error) {
	err := r.k.engine.GoOn(ctx, key)
	var public *holdfast.Error
	if errors.As(err, &public) && public.Code == codes.AgentNotFound {
		return r.tend(ctx, key, true)
	}
	return tended{}, err
}

// rests reports whether the thread waits for nobody, and nobody has to finish it.
func rests(st *thread.State) bool {
	return st.Status() == threads.StatusIdle && len(st.OutsideCalls()) == 0
}

// mayBeAged reports whether a thread may have checkpoints to remove for their age.
func (r retaining) mayBeAged(st *thread.State) bool {
	limit := r.k.cfg.Retention.Checkpoints
	oldest, ages := thread.Aging(&st.Tended, st.Checkpoints)
	return limit > 0 && ages && r.k.cfg.Now().Age(oldest) > limit
}

// largerThan reports whether a thread takes more bytes than it may. The store is asked only if the
// estimate is more.
func (r retaining) largerThan(ctx context.Context, key store.ThreadKey, estimate int64) (bool, error) {
	bound := r.k.cfg.Retention.PruneBytes
	if bound <= 0 || estimate <= bound {
		return false, nil
	}
	total, err := r.k.read.Size(ctx, key)
	return total > bound, err
}
