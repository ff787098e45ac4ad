package owner

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A request that finds a thread run by a process which may be dead. The lease is the only sign
// of a process that has fallen silent: it looks alive until its lease ends. Watchers of a
// stream need not know, because the stream shows what becomes of the run. A POST must know,
// because what it means depends on it. So it waits, holding no lock, until the owner gives a
// sign of life, another process has claimed the run, or the silence has lasted long enough to
// claim the run here.

// vigil is one request's watch over the owner of a thread. A nil vigil does not wait.
type vigil struct {
	// process, etag and until are the owner, the head and the end of the owner's lease
	// when the request first saw that owner. If one of the latter two has moved, the
	// owner lives.
	process, etag string
	until         time.Time
	// deadline is when the request goes on in any case; zero before it first waits.
	deadline time.Time
	// wake receives after commits to the thread; nil before the request first waits.
	wake <-chan struct{}
	stop func()
}

// silence is the error of a decision that has to wait for a sign of the owner.
type silence struct {
	key   store.ThreadKey
	after time.Duration // when to look again, if nothing happens before
}

// Error implements error. Nobody reads it: Post waits instead.
func (s *silence) Error() string { return fmt.Sprintf("thread %s: the owner is silent", s.key) }

// end ends the watch.
func (w *vigil) end() {
	if w.stop != nil {
		w.stop()
	}
}

// owned returns a silence if the request must wait for a sign of life of the owner, which
// holds the lease l. An owner that has renewed it in time counts as alive, if a takeover
// follows should it be dead. Without recovery the run would end instead, so nothing but a
// sign given since the request came will do.
func (w *vigil) owned(head *store.Head, l store.Lease, cfg *loop.Config) error {
	switch {
	case w == nil:
		return nil
	case w.process != head.Process:
		w.process, w.etag, w.until = head.Process, head.ETag, l.Until
		if cfg.Recover && l.Left >= cfg.Lease/2 {
			return nil
		}
	case head.ETag != w.etag || l.Until.After(w.until):
		return nil
	}
	return w.silent(head.Key, min(l.Left, cfg.Lease/2), l.Left+cfg.Lease)
}

// silent returns a silence, unless the request has waited for most since its first one.
func (w *vigil) silent(key store.ThreadKey, after, most time.Duration) error {
	if w == nil {
		return nil
	}
	now := time.Now()
	if w.deadline.IsZero() {
		w.deadline = now.Add(most)
	}
	if now.After(w.deadline) {
		return nil
	}
	return &silence{key, after}
}

// ownerGone returns why the owner of a running thread is gone, or that it has been silent
// for long enough to count as gone; notLost if it is neither. While the request of w must
// wait to know, the error is a silence.
func (o *takeovers) ownerGone(ctx context.Context, t *thread.Thread, w *vigil) (cause, error) {
	if t.Head.Process == o.process {
		return gaveUp, nil // the run is not in this process any more
	}
	l, err := o.cfg.Store.Lease(ctx, t.Head.Process)
	if err != nil {
		return notLost, thread.StoreError(err)
	}
	if l.Gone {
		return dead, nil
	}
	if l.Alive() {
		return notLost, w.owned(t.Head, l, o.cfg)
	}
	if left := o.contact.deaf(); left > 0 {
		return notLost, w.silent(t.Key, left, left+o.cfg.Lease)
	}
	return fellSilent, nil
}

// outwait waits until there may be news of the owner. The first time it returns at once,
// so that the thread is read again after the watch has begun.
func (o *takeovers) outwait(ctx context.Context, w *vigil, s *silence) error {
	if w.wake == nil {
		select {
		case o.waiting <- struct{}{}:
		default:
			return errTooManyWaiting(cap(o.waiting))
		}
		w.stop = func() { <-o.waiting } // also if Watch panics
		wake, stop := o.cfg.Store.Watch(s.key)
		w.wake, w.stop = wake, func() { defer func() { <-o.waiting }(); stop() }
		return nil
	}
	look := time.NewTimer(s.after + time.Millisecond)
	defer look.Stop()
	select {
	case <-w.wake:
	case <-look.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-o.draining:
		return errShuttingDown()
	}
	if o.cfg.Waited != nil {
		o.cfg.Waited(ctx, s.key.Thread)
	}
	return nil
}
