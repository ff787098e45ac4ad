package owner

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/routine"
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

// claims are the commits under way that make this process an owner, and those of which nobody
// knows whether they landed.
type claims struct {
	*house
	places    *places
	residents *residents
	entrance  routine.Entrance // of the commits under way

	mu     sync.Mutex
	unsure map[store.ThreadKey]*unsure
	gaveUp clock.Moment // when one that had not landed was given up; never at first
}

// newClaims returns the claims of a process whose runs are rs.
func newClaims(rs *residents) *claims {
	return &claims{house: rs.house, places: rs.places, residents: rs, unsure: make(map[store.ThreadKey]*unsure)}
}

// acquire makes the commit of b, and launches its run, if it has one, once that is
// accepted. The error is too_many_runs or limit_exceeded, before anything was sent, if no
// place is free. The caller holds the thread's lock.
func (c *claims) acquire(ctx context.Context, at holdfast.Iteration, b *begun) error {
	if !c.contact.announced() {
		return errUnannounced()
	}
	if !c.entrance.Enter() {
		return errShuttingDown()
	}
	defer c.entrance.Leave()
	var place *slot
	if b.start != nil {
		take := c.places.take
		if b.start.TakenOver {
			take = c.places.hold
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
	defer c.residents.coming.expect(b.c)()
	b.asked = clock.Now()
	known, err := c.host.CommitAlone(ctx, at, b.c)
	if err == nil {
		b.accepted()
	} else {
		c.behind.Store(true)
	}
	switch {
	case b.start == nil:
	case err == nil:
		if err = c.residents.launch(b, place); err != nil {
			c.behind.Store(true)
		}
	case !known:
		b.unsure = true
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(b.c.Key)
		if c.stopping() {
			return err // the process that takes the run over, it is not launched here
		}
		place.kept = true // by the run that may have begun
		c.unsure[b.c.Key] = &unsure{b, &slot{of: c.places, who: at.Principal, agents: place.agents}, clock.Now()}
	}
	return err
}

// drop gives up on a commit of which nobody knows whether it landed. The caller holds mu.
func (c *claims) drop(key store.ThreadKey) {
	if u := c.unsure[key]; u != nil {
		delete(c.unsure, key)
		u.place.release()
		if u.dropped != nil {
			u.dropped()
		}
	}
}

// settle launches the run of a commit that has turned out to have landed. It reports
// whether there was one. The caller holds the thread's lock.
func (c *claims) settle(t *thread.Thread) bool {
	c.mu.Lock()
	u := c.unsure[t.Key]
	landed := u != nil && t.Head != nil && t.Head.ETag == u.c.ID
	switch {
	case landed:
		delete(c.unsure, t.Key)
	case u != nil && t.Head != nil && t.Head.Position() != u.c.Expect: // it cannot land any more
		c.drop(t.Key)
	}
	c.mu.Unlock()
	if landed {
		defer u.place.release()
		u.accepted()
		if err := c.residents.launch(u.begun, u.place); err != nil {
			c.behind.Store(true)
			c.cfg.Log.Warn("a run could not be continued yet",
				"thread", t.Key.Thread, "error", err) // the sweep finds it
		}
	}
	return landed
}

// landsWithin is for how long it is looked for commits that were given up: a store that stood still has
// them in its connections.
const landsWithin = time.Minute

// forgetUnsure gives up on commits that have not landed for so long that they hardly will.
func (c *claims) forgetUnsure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, u := range c.unsure {
		c.behind.Store(true)
		if u.since.Ran() > c.cfg.StoreTimeout+c.cfg.Lease {
			c.drop(key)
			c.gaveUp = clock.Now()
		}
	}
	if !c.gaveUp.Never() && c.gaveUp.Ran() < landsWithin {
		c.behind.Store(true)
	}
}

// finish lets no commit begin any more, and waits for those under way, or until ctx is done.
func (c *claims) finish(ctx context.Context) {
	c.entrance.Close()
	c.entrance.Wait(ctx)
}

// release gives the places of the unsure runs back once a shutdown has begun: from then on nothing
// is launched, and acquire keeps none.
func (c *claims) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.unsure {
		u.place.release()
	}
	clear(c.unsure)
}
