package owner

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/pin"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// takeovers make sure that a thread that claims to run has a living owner, and make this
// process that if it has none.
type takeovers struct {
	*house
	locks      *locks
	residents  *residents
	claims     *claims
	successors *successors
	// waiting are the requests that wait for a sign of an owner; see outwait.
	waiting chan struct{}
}

// ensureOwnerOf is ensureOwner for a thread that has not been read. Losing to another
// process is no error.
func (o *takeovers) ensureOwnerOf(ctx context.Context, key store.ThreadKey) error {
	return o.succeed(ctx, key, "", nil)
}

// succeed makes sure that the thread has a living owner. leaving is the process that has
// handed it over, and so does not count as one; "" if none has. mine reports whether it is this
// process's turn if the thread is of an agent; nil means that it is.
func (o *takeovers) succeed(
	ctx context.Context, key store.ThreadKey, leaving string, mine func(agent string) bool,
) error {
	defer o.locks.lock(key)()
	t, err := o.read.Head(ctx, key)
	if err != nil || mine != nil && t.Head != nil && !mine(t.State.Agent) {
		return err
	}
	if leaving != "" && t.Head.Process == leaving && t.State.Running() {
		_, err = o.become(ctx, t, handedOver)
	} else {
		_, err = o.ensureOwner(ctx, t, nil)
	}
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) {
		return nil // another process was faster
	}
	return err
}

// ensureOwner makes sure that a thread that claims to run has a living owner. It reports
// whether the head has moved. The caller holds the thread's lock. While the request of w,
// which may be nil, must wait to know whether the owner lives, the error is a silence.
func (o *takeovers) ensureOwner(ctx context.Context, t *thread.Thread, w *vigil) (bool, error) {
	if o.claims.settle(t) || t.Head == nil || !t.State.Running() || o.residents.local(t.Key) != nil {
		return false, nil
	}
	why, err := o.ownerGone(ctx, t, w)
	if err != nil || why == notLost {
		return false, err
	}
	return o.become(ctx, t, why)
}

// handOn hands a run over that this process has given up, if t still says where its thread stands. A run that
// has ended since is none that others may go on with: they would take the next one that begins here. It
// reports whether the head has moved. The caller holds the thread's lock.
func (o *takeovers) handOn(ctx context.Context, t *thread.Thread) (moved bool, err error) {
	now, err := o.read.Head(ctx, t.Key)
	if err != nil {
		return false, err
	}
	if now.Head == nil || now.Head.Position() != t.Head.Position() {
		return true, nil
	}
	o.host.HandOver(t.Key)
	return false, nil
}

// become makes this process the owner of a thread, of which the owner is gone, or has
// handed it over, unless the run waits for another one. It reports whether the head has
// moved, also with an error. The caller holds the thread's lock.
func (o *takeovers) become(ctx context.Context, t *thread.Thread, why cause) (moved bool, err error) {
	place, key := t.Place(), t.Key
	s, err := o.successors.of(ctx, t)
	defer s.agents.Drop()
	var next *begun
	var refused *holdfast.Error
	switch {
	case err != nil:
	case s.verdict == pin.Wait:
		if why == gaveUp && s.others { // who take this process, which lives, for the owner
			return o.handOn(ctx, t)
		}
		return false, nil
	case s.verdict == pin.Stored:
		o.cfg.Observer.TakenOver(place, observe.TakeoverWaits, "")
		return true, nil
	case s.verdict == pin.Over:
		refused = errRevisionGone(t, s.agent)
	default:
		how := loss{why, s.verdict == pin.Cancelled}
		if next, refused, err = o.takeOver(ctx, t, s.agent, how); next != nil {
			o.announceLoss(next, t, how)
		}
	}
	if refused != nil {
		next, err = o.cutOff(ctx, t, refused)
	}
	if err == nil {
		err = o.claims.acquire(ctx, place, next)
	}
	if reason := err; errors.Is(err, errUndecodable) {
		if t, err = o.read.Head(ctx, key); err == nil {
			next, err = o.cutOff(ctx, t, holdfast.AsError(reason))
		}
		if err == nil {
			err = o.claims.acquire(ctx, place, next)
		}
	}
	if err == nil {
		return true, nil
	}
	if ctx.Err() == nil {
		o.cfg.Observer.TakenOver(place, takeoverResult(err), "")
	}
	return true, thread.ReadUnlessMoved(key, err)
}
