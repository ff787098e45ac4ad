package loop

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The check that this process makes immediately before a tool or a model call starts: that it
// still owns the thread. Another process takes a run over when the owner's lease has run out.
// So two things together are proof. The store has acknowledged a commit that was sent at a
// moment; and the lease was held without a break from that moment until now. An answer says
// what was true when it was asked for, not when it came: it may have been under way for longer
// than the lease. To have read the head is no such proof, because that does not move it: another
// process may have read it before, and found the lease ended.
//
// Before a call with effects, the store must have said recently, too, that this process is the
// owner, because there are other ways to lose a thread: connections that broke, a Redis that
// another one has replaced, a clock of Redis that was put forward. To read the head is enough
// for that.
//
// Between this check and the first instruction of the tool lie microseconds, and two fifths of
// the lease at least are left. A process that is suspended for longer than that just there
// starts the tool late. Nothing in the process can prevent that; only the other side can,
// which knows the call by its key.

// owner is what makes sure of that for a run.
type owner struct {
	ctx   context.Context // the run's
	cfg   *Config
	lease lease
	w     *journal.Writer
	key   store.ThreadKey
	// leave ends the run in this process.
	leave context.CancelCauseFunc
	// sole means that no other process knows of the run.
	sole bool
}

// mayStart returns nil if this process is sure to own the run's thread now. Otherwise it ends
// the run here, because another process has it, or may have it soon.
func (o *owner) mayStart(call string, effects bool) error {
	err := o.confirm(call, effects)
	if err != nil {
		o.leave(err)
	}
	return err
}

// starting returns a context in which a tool or a model asks mayStart when it is really
// called, after the hooks around it, which may wait.
func (o *owner) starting(ctx context.Context, call string, effects bool) context.Context {
	return hooks.ContextWithStart(ctx, func() error { return o.mayStart(call, effects) })
}

// confirm returns nil if this process owns the thread, and [store.ErrFenced] if not, or if
// that cannot be found out within Config.StoreTimeout. A process that was suspended, or could
// not reach the store, first gets its lease back, then moves the head, and then reads it, in
// this order: its runs may be another one's by now, or become so at any moment, by a process
// that has read the head, and then found that the lease has ended. If the head has moved, that
// process must read it again, and then sees a lease that is held.
func (o *owner) confirm(call string, effects bool) error {
	if o.sole {
		return nil
	}
	proof := o.w.Acknowledged()
	if o.lease.HeldSince(proof) && (!effects || proof.Elapsed() < o.cfg.Lease/3) {
		return nil
	}
	ctx, cancel := context.WithTimeout(o.ctx, o.cfg.StoreTimeout)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, o.cfg.Lease/10) {
		if o.cfg.Waited != nil {
			o.cfg.Waited(ctx, call)
		}
		asked := clock.Now()
		head, err := o.cfg.Store.Head(ctx, o.key)
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && head.Fence != o.w.Fence:
			return store.ErrFenced
		case err != nil || !o.lease.HeldSince(asked) || asked.Elapsed() >= o.cfg.Lease/3:
		case o.lease.HeldSince(o.w.Acknowledged()):
			return nil
		default:
			if err = o.w.Advance(ctx); err == nil {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(store.ErrFenced, thread.StoreError(err))
		case <-time.After(pause):
		}
	}
}
