package owner

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The list of the runs in this process: each is launched into it, is told there of what is posted
// for it, and leaves it when it has ended.

// resident is a run that lives in this process.
type resident struct {
	run   runner
	start *loop.Start
	feed  *journal.Feed // what its watchers read
	// readers are the goroutines that read its inbox; they start only while it is listed.
	readers sync.WaitGroup
	done    chan struct{} // closed when it has ended here, and its place is free
}

// runner is a run, as the process that owns its thread uses it.
type runner interface {
	// Begin makes it one that can be watched and written to.
	Begin(asked clock.Moment, seq agui.Sequencer)
	// Main runs it to its end in this process.
	Main()
	// ReadInbox takes what has come for it.
	ReadInbox()
	// Spec returns the specification of one of its tools; the zero one of another.
	Spec(tool string) holdfast.ToolSpec
	// PassOn hands it over, instead of beginning it here.
	PassOn()
}

// residents are the runs that live in this process. One lock decides whether a run may still
// begin, and which ones there are once nothing may: a shutdown misses none.
type residents struct {
	*house
	places *places
	coming coming

	mu    sync.Mutex
	runs  map[store.ThreadKey]*resident
	sides map[*resident]bool
}

// newResidents returns an empty list.
func newResidents(h *house, p *places) *residents {
	return &residents{
		house:  h,
		places: p,
		coming: coming{threads: make(map[store.ThreadKey]bool)},
		runs:   make(map[store.ThreadKey]*resident),
		sides:  make(map[*resident]bool),
	}
}

// count returns how many runs there are.
func (rs *residents) count() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.runs) + len(rs.sides)
}

// drain has nothing new start any more, and returns the runs that there are.
func (rs *residents) drain() []*resident {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	select {
	case <-rs.draining:
	default:
		close(rs.draining)
	}
	runs := make([]*resident, 0, len(rs.runs)+len(rs.sides))
	for _, r := range rs.runs {
		runs = append(runs, r)
	}
	for r := range rs.sides {
		runs = append(runs, r)
	}
	return runs
}

// feedOf returns the feed of the thread's run while it lives in this process; nil
// otherwise.
func (rs *residents) feedOf(key store.ThreadKey) *journal.Feed {
	if r := rs.local(key); r != nil {
		return r.feed
	}
	return nil
}

// local returns the thread's run if it lives in this process; nil otherwise.
func (rs *residents) local(key store.ThreadKey) *resident {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.runs[key]
}

// holdRunning returns the agent of that name and revision of a run in this process, with its agents
// in use; nil if there is none. After a reload there may be runs with agents of before.
func (rs *residents) holdRunning(name, revision string) *agents.Agent {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.runs {
		if r.start.Agent.Name == name && r.start.Agent.Revision == revision && r.start.Agent.Of.Hold() {
			return r.start.Agent
		}
	}
	return nil
}

// launch starts the goroutine of a run, which takes over the caller's slot. During a
// shutdown nothing is started, and the run is handed over. The error is errUndecodable.
func (rs *residents) launch(b *begun, s *slot) (err error) {
	head := thread.HeadAfter(b.c)
	if b.messages != nil {
		if b.start.History, err = b.messages.Decode(); err != nil {
			return fmt.Errorf("%w: %w", errUndecodable, err)
		}
	}
	one := loop.New(rs.host, b.start, head, thread.RecordsOf(b.c))
	r := &resident{run: one, start: b.start, feed: one.Feed(), done: make(chan struct{})}
	rs.mu.Lock()
	if rs.stopping() {
		rs.mu.Unlock()
		r.run.PassOn()
		return nil
	}
	defer rs.mu.Unlock()
	r.run.Begin(b.asked, b.seq)
	rs.runs[head.Key] = r
	s.kept = true
	rs.wg.Go(func() { rs.live(r) })
	if rs.coming.noMail(head.Key) {
		return nil
	}
	r.readers.Add(1) // something may have been posted before it was listed
	rs.writers.Go(func() {
		defer r.readers.Done()
		r.run.ReadInbox()
	})
	return nil
}

// live runs a run to its end in this process, and frees its place.
func (rs *residents) live(r *resident) {
	r.run.Main()
	rs.unlist(r)
	rs.behind.Store(true)
	r.readers.Wait()
	r.feed.End()
	rs.places.free(holdfast.Principal{Tenant: r.start.Key.Tenant, User: r.start.Rec.User}, r.start.Agent.Of)
	close(r.done)
}

// unlist removes a run from the list; after that nothing starts to read its inbox.
func (rs *residents) unlist(r *resident) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.sides, r)
	if rs.runs[r.start.Key] == r { // the next run of the thread may have begun
		delete(rs.runs, r.start.Key)
	}
}

// posted makes the thread's run read its inbox; for the zero key, all runs of this
// process. It does not block.
func (rs *residents) posted(key store.ThreadKey) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.coming.posted(key)
	if r := rs.runs[key]; r != nil {
		r.readers.Go(r.run.ReadInbox)
	}
	if key == (store.ThreadKey{}) {
		for _, r := range rs.runs {
			r.readers.Go(r.run.ReadInbox)
		}
	}
}

// launchSide starts the run's goroutine, which ends with ctx, and takes over the slot. tools are
// the goroutines of its tools, which may outlive their call.
func (rs *residents) launchSide(
	ctx context.Context, r *resident, cancel func(error), seq agui.Sequencer, tools *sync.WaitGroup, place *slot,
) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stopping() {
		cancel(loop.ErrStopped)
		return errShuttingDown()
	}
	r.run.Begin(clock.Now(), seq)
	rs.sides[r] = true
	place.kept = true
	stay := context.AfterFunc(ctx, func() { cancel(holdfast.ErrCancelled) })
	rs.wg.Go(func() {
		defer stay()
		rs.live(r)
		tools.Wait()
	})
	return nil
}
