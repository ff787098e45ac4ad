// Package owner is who runs a thread. The Engine reads a thread, has package decide say what
// a POST means, makes the first commit of a run, and launches its goroutine, which is package
// loop. The Engine also finds runs whose process has died and takes them over. A run is to
// this package what five functions of it do; the package knows no HTTP and no particular
// store.
package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/watch"
	"github.com/holdfast-agents/holdfast/store"
)

// The Engine is the runs of one process and what keeps them: the lease that shows that the
// process is alive, the slots that bound how many run, the locks under which requests for one
// thread are decided, and the shutdown that lets every run come to a boundary. The parts that
// all runs share without knowing each other are in host.go.

// Engine runs agents. It lists what runs in this process and who watches. A process has
// one.
type Engine struct {
	*house
	renewal renewal
	streams *watch.Streams
	seed    maphash.Seed
	// locks serialize what this process decides about one thread.
	locks  [256]sync.Mutex
	places *places
	// turns lets requests be decided some at a time, so that the runs that go on do not wait
	// for all of those that begin. Requests admitted together stay in step, so one wake-up
	// serves several runs.
	turns *routine.Gate
	// returns does the same for clients that come back and for whose streams the store must
	// be read.
	returns *routine.Gate
	// checker finds out whether what comes fits schemas.
	checker *checker
	// waiting are the requests that wait for a sign of an owner; see outwait.
	waiting    chan struct{}
	sweeper    *sweeper
	successors *successors

	stopListening func() // ends the store's calls of posted, and of the sweeper

	mu     sync.Mutex
	runs   map[store.ThreadKey]*resident
	sides  map[*resident]bool
	coming coming
	unsure map[store.ThreadKey]*unsure
	// acquiring are the commits under way that make this process an owner.
	acquiring entrance
	closed    chan struct{} // closed when streams must end
}

// turnWait is how long the first in line waits for its turn. A store that is far away makes
// turns long without keeping the processor busy.
const turnWait = 10 * time.Millisecond

// How many requests are decided, and how many streams are read for, at a time for each
// processor. With more, runs that go on wait longer while many begin or come back; with
// fewer, those do (go run ./bench -only starts, burst, together, storm).
const (
	turnsAtOnce   = 16
	returnsAtOnce = 4
)

// New returns an Engine. Call Start before anything else. It returns an error for an
// agent whose middleware registers two states of one name.
func New(cfg loop.Config) (*Engine, error) {
	h, err := newHouse(cfg)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		house:         h,
		renewal:       renewal{house: h},
		seed:          maphash.MakeSeed(),
		places:        &places{limits: cfg.Limits, taken: make(chan struct{}, cfg.MaxRuns)},
		turns:         routine.NewGate(turnsAtOnce*runtime.GOMAXPROCS(0), turnWait),
		checker:       newChecker(),
		returns:       routine.NewGate(returnsAtOnce*runtime.GOMAXPROCS(0), turnWait),
		waiting:       make(chan struct{}, cfg.MaxRuns),
		runs:          make(map[store.ThreadKey]*resident),
		sides:         make(map[*resident]bool),
		coming:        coming{threads: make(map[store.ThreadKey]bool)},
		unsure:        make(map[store.ThreadKey]*unsure),
		closed:        make(chan struct{}),
		stopListening: func() {},
	}
	e.sweeper, e.successors = newSweeper(
		h.cfg,
		h.process,
		h.contact,
	), &successors{
		house:   h,
		pins:    newKeeper(h),
		running: e.holdRunning,
	}
	h.used = e.sweeper.look
	e.sweeper.ctx, e.sweeper.draining = h.ctx, h.draining
	e.sweeper.here = func(key store.ThreadKey) bool { return e.local(key) != nil }
	e.sweeper.succeed, e.sweeper.swept = e.succeed, e.forgetUnsure
	e.streams = watch.New(watch.Config{
		Store:       cfg.Store,
		Live:        e.feedOf,
		Closed:      e.closed,
		KeepAlive:   cfg.KeepAlive,
		MaxSnapshot: cfg.MaxSnapshot,
		TailBytes:   cfg.TailBytes,
	})
	return e, nil
}

// Start announces the process and begins to look for runs that a dead process left
// behind. When it returns, the Engine can serve, although it may not be Ready: a store that
// refuses writes can be read. The error is that of a store that does not answer.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.renewal.announce(ctx); err != nil {
		return err
	}
	noPosts, noDepartures := e.cfg.Store.OnPost(e.posted), e.cfg.Store.OnDeparture(e.process, e.sweeper.hear)
	e.stopListening = func() { noPosts(); noDepartures() }
	e.wg.Go(e.renewal.keep)
	e.wg.Go(e.sweeper.run)
	e.wg.Go(e.sweeper.inheritAll)
	return nil
}

// Ready reports whether the store answers, and would accept a commit.
func (e *Engine) Ready(ctx context.Context) error {
	if e.stopping() {
		return errShuttingDown()
	}
	if _, err := e.cfg.Store.Lease(ctx, e.process); err != nil {
		return thread.StoreError(err)
	}
	if c, ok := e.cfg.Store.(store.CommitChecker); ok {
		switch err := c.CanCommit(ctx); {
		case errors.Is(err, store.ErrUnreadable):
			return thread.NotReady(err)
		case err != nil:
			return thread.StoreError(err)
		}
	}
	if !e.contact.announced() {
		return errUnannounced()
	}
	if err := e.formats.Err(); err != nil {
		return thread.StoreError(err)
	}
	return nil
}

// Running returns how many runs this process has.
func (e *Engine) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs) + len(e.sides)
}

// Lock serializes what this process decides about one thread, until unlock is called.
func (e *Engine) Lock(key store.ThreadKey) (unlock func()) {
	m := &e.locks[maphash.Comparable(e.seed, key)%uint64(len(e.locks))]
	m.Lock()
	return m.Unlock
}

// feedOf returns the feed of the thread's run while it lives in this process; nil
// otherwise.
func (e *Engine) feedOf(key store.ThreadKey) *journal.Feed {
	if r := e.local(key); r != nil {
		return r.feed
	}
	return nil
}

// local returns the thread's run if it lives in this process; nil otherwise.
func (e *Engine) local(key store.ThreadKey) *resident {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[key]
}

// holdRunning returns the agent of that name and revision of a run in this process, with its agents
// in use; nil if there is none. After a reload there may be runs with agents of before.
func (e *Engine) holdRunning(name, revision string) *agents.Agent {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r.start.Agent.Name == name && r.start.Agent.Revision == revision && r.start.Agent.Of.Hold() {
			return r.start.Agent
		}
	}
	return nil
}

// ShownStates returns the middleware's states in st as the thread's owner may see them;
// nil if there are none.
func (e *Engine) ShownStates(ctx context.Context, key store.ThreadKey, st *thread.State) (json.RawMessage, error) {
	return e.schemas.shown(ctx, key, st)
}

// Left reports whether this process owns a thread whose run it has given up.
func (e *Engine) Left(head *store.Head) bool {
	return head.Process == e.process && e.local(head.Key) == nil
}

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

// launch starts the goroutine of a run, which takes over the caller's slot. During a
// shutdown nothing is started, and the run is handed over. The error is errUndecodable.
func (e *Engine) launch(b *begun, s *slot) (err error) {
	head := thread.HeadAfter(b.c)
	if b.messages != nil {
		if b.start.History, err = b.messages.Decode(); err != nil {
			return fmt.Errorf("%w: %w", errUndecodable, err)
		}
	}
	one := loop.New(e.host, b.start, head, thread.RecordsOf(b.c))
	r := &resident{run: one, start: b.start, feed: one.Feed(), done: make(chan struct{})}
	e.mu.Lock()
	if e.stopping() {
		e.mu.Unlock()
		r.run.PassOn()
		return nil
	}
	defer e.mu.Unlock()
	r.run.Begin(b.asked, b.seq)
	e.runs[head.Key] = r
	s.kept = true
	e.wg.Go(func() { e.live(r) })
	if e.coming.noMail(head.Key) {
		return nil
	}
	r.readers.Add(1) // something may have been posted before it was listed
	e.writers.Go(func() {
		defer r.readers.Done()
		r.run.ReadInbox()
	})
	return nil
}

// live runs a run to its end in this process, and frees its place.
func (e *Engine) live(r *resident) {
	r.run.Main()
	e.unlist(r)
	r.readers.Wait()
	r.feed.End()
	e.places.free(holdfast.Principal{Tenant: r.start.Key.Tenant, User: r.start.Rec.User}, r.start.Agent.Of)
	close(r.done)
}

// unlist removes a run from the list; after that nothing starts to read its inbox.
func (e *Engine) unlist(r *resident) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sides, r)
	if e.runs[r.start.Key] == r { // the next run of the thread may have begun
		delete(e.runs, r.start.Key)
	}
}

// posted makes the thread's run read its inbox; for the zero key, all runs of this
// process. It does not block.
func (e *Engine) posted(key store.ThreadKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.coming.posted(key)
	if r := e.runs[key]; r != nil {
		r.readers.Go(r.run.ReadInbox)
	}
	if key == (store.ThreadKey{}) {
		for _, r := range e.runs {
			r.readers.Go(r.run.ReadInbox)
		}
	}
}
