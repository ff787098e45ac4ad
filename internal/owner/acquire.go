package owner

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The commit that makes this process the owner of a thread: the first one of a run, or that
// of a takeover. Once it may have landed, the run is this process's business and no longer
// the request's, or a client that leaves at that moment would leave a run behind whose
// owner lives and does not know it. So the commit is not cancelled with its request, and
// if the store's answer is lost, the head says what became of it. If that cannot be read
// either, the run is kept until somebody reads the thread.

// unsure is a run whose commit may have landed. It keeps its place among the runs.
type unsure struct {
	*begun
	place *slot
	since clock.Moment
}

// acquire makes the commit of b, and launches its run, if it has one, once that is
// accepted. The error is too_many_runs or limit_exceeded, before anything was sent, if no
// place is free. The caller holds the thread's lock.
func (e *Engine) acquire(ctx context.Context, at holdfast.Iteration, b *begun) error {
	if !e.contact.announced() {
		return errUnannounced()
	}
	if !e.acquiring.enter() {
		return errShuttingDown()
	}
	defer e.acquiring.leave()
	var place *slot
	if b.start != nil {
		take := e.places.take
		if b.elsewhere {
			take = e.places.hold
		}
		var err error
		if place, err = take(at.Principal); err != nil {
			return err
		}
		if !b.start.Agent.Of.Hold() {
			place.release()
			return errDecideAgain // somebody has dropped them who uses them
		}
		place.agents = b.start.Agent.Of
	}
	defer place.release()
	defer e.coming.expect(b.c)()
	b.asked = clock.Now()
	known, err := e.host.CommitAlone(ctx, at, b.c)
	if err == nil {
		b.accepted()
	}
	switch {
	case b.start == nil:
	case err == nil:
		err = e.launch(b, place)
	case !known:
		b.unsure = true
		e.mu.Lock()
		defer e.mu.Unlock()
		e.drop(b.c.Key)
		if e.stopping() {
			return err // the process that takes the run over, it is not launched here
		}
		place.kept = true // by the run that may have begun
		e.unsure[b.c.Key] = &unsure{b, &slot{of: e.places, who: at.Principal, agents: place.agents}, clock.Now()}
	}
	return err
}

// drop gives up on a commit of which nobody knows whether it landed. The caller holds mu.
func (e *Engine) drop(key store.ThreadKey) {
	if u := e.unsure[key]; u != nil {
		delete(e.unsure, key)
		u.place.release()
		if u.dropped != nil {
			u.dropped()
		}
	}
}

// settle launches the run of a commit that has turned out to have landed. It reports
// whether there was one. The caller holds the thread's lock.
func (e *Engine) settle(t *thread.Thread) bool {
	e.mu.Lock()
	u := e.unsure[t.Key]
	landed := u != nil && t.Head != nil && t.Head.ETag == u.c.ID
	switch {
	case landed:
		delete(e.unsure, t.Key)
	case u != nil && t.Head != nil && t.Head.Position() != u.c.Expect: // it cannot land any more
		e.drop(t.Key)
	}
	e.mu.Unlock()
	if landed {
		defer u.place.release()
		u.accepted()
		if err := e.launch(u.begun, u.place); err != nil {
			e.cfg.Log.Warn("a run could not be continued yet",
				"thread", t.Key.Thread, "error", err) // the sweep finds it
		}
	}
	return landed
}

// forgetUnsure gives up on commits that have not landed for so long that they never will.
func (e *Engine) forgetUnsure() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, u := range e.unsure {
		if u.since.Ran() > e.cfg.StoreTimeout+e.cfg.Lease {
			e.drop(key)
		}
	}
}
