// Package owner is who runs a thread. The Engine reads a thread, has package decide say what
// a POST means, makes the first commit of a run, and launches its goroutine, which is package
// loop. The Engine also finds runs whose process has died and takes them over. A run is to
// this package what five functions of it do; the package knows no HTTP and no particular
// store.
package owner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/internal/watch"
	"github.com/holdfast-agents/holdfast/store"
)

// The Engine is the runs of one process and what keeps them: the lease that shows that the
// process is alive, the slots that bound how many run, the locks under which requests for one
// thread are decided, and the shutdown that lets every run come to a boundary. The parts that
// all runs share without knowing each other are in house.go.

// Engine runs agents. It lists what runs in this process and who watches. A process has
// one.
type Engine struct {
	*house
	renewal   renewal
	streams   *watch.Streams
	locks     *locks
	places    *places
	residents *residents
	claims    *claims
	takeovers *takeovers
	starter   *starter
	decider   *decider
	// returns lets clients that come back, and for whose streams the store must be read, do so
	// some at a time, as the decider's turns do for requests.
	returns *turns.Turns
	// checker finds out whether what comes fits schemas.
	checker *checker
	sweeper *sweeper

	stopListening func() // ends the store's calls of the residents' posted, and of the sweeper

	ended  sync.Once
	closed chan struct{} // closed when streams must end
}

// turnWait is how long the next one in line waits for its turn. A store that is far away makes
// turns long without keeping the processor busy.
const turnWait = 10 * time.Millisecond

// How many requests are decided, and how many streams are read for, at a time for each
// processor; and how many requests of a tenant, while more of them wait. With more, runs that go
// on wait longer while many begin or come back; with fewer, those do (go run ./bench -only starts,
// burst, together, storm; go run ./bench -hostile).
const (
	turnsAtOnce   = 16
	turnsInLine   = 1
	returnsAtOnce = 4
)

// placesFor returns turns for so many at a time for each processor. Tenants and users come one
// after the other, so a crowd of one keeps nobody else waiting.
func placesFor(each, inLine int) *turns.Turns {
	n := runtime.GOMAXPROCS(0)
	return turns.NewPatient(each*n, each*n, inLine*n, turnWait)
}

// New returns an Engine. Call Start before anything else. It returns an error for an
// agent whose middleware registers two states of one name.
func New(cfg loop.Config) (*Engine, error) {
	h, err := newHouse(cfg)
	if err != nil {
		return nil, err
	}
	free := &places{limits: cfg.Limits, taken: make(chan struct{}, cfg.MaxRuns)}
	rs, one := newResidents(h, free), &locks{}
	owns := newClaims(rs)
	e := &Engine{
		house:     h,
		renewal:   renewal{house: h},
		locks:     one,
		places:    free,
		residents: rs,
		claims:    owns,
		takeovers: &takeovers{
			house:      h,
			locks:      one,
			residents:  rs,
			claims:     owns,
			successors: &successors{house: h, pins: newKeeper(h), running: rs.holdRunning},
			waiting:    make(chan struct{}, cfg.MaxRuns),
		},
		starter:       &starter{house: h, places: free, claims: owns},
		checker:       &checker{cmp.Or(cfg.Heavy, turns.NewHeavy())},
		returns:       placesFor(returnsAtOnce, returnsAtOnce),
		sweeper:       newSweeper(h),
		closed:        make(chan struct{}),
		stopListening: func() {},
	}
	e.decider = &decider{
		house:     h,
		turns:     placesFor(turnsAtOnce, turnsInLine),
		locks:     one,
		residents: rs,
		takeovers: e.takeovers,
		starter:   e.starter,
	}
	h.used = e.sweeper.lookAgain
	e.sweeper.here = func(key store.ThreadKey) bool { return rs.local(key) != nil }
	e.sweeper.succeed, e.sweeper.swept, e.sweeper.share = e.takeovers.succeed, owns.forgetUnsure, e.Share
	e.streams = watch.New(watch.Config{
		Store:       cfg.Store,
		Live:        rs.feedOf,
		Closed:      e.closed,
		Waited:      cfg.Waited,
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
	noPosts, noDepartures := e.cfg.Store.OnPost(e.residents.posted), e.cfg.Store.OnDeparture(e.process, e.sweeper.hear)
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

// Share returns how long this process waits between two looks at what all processes look at, if one
// that is alone waits for d: of many, one looks about five times in 2d, at no particular time.
func (e *Engine) Share(d time.Duration) time.Duration {
	if living := e.sweeper.living.Load(); living > 2 {
		d = time.Duration(float64(d) * 0.4 * float64(living))
	}
	if e.cfg.Random == nil {
		return d
	}
	return d/2 + time.Duration(float64(d)*e.cfg.Random())
}

// Running returns how many runs this process has.
func (e *Engine) Running() int { return e.residents.count() }

// Lock serializes what this process decides about one thread, until unlock is called.
func (e *Engine) Lock(key store.ThreadKey) (unlock func()) { return e.locks.lock(key) }

// ShownStates returns the middleware's states in st as the thread's owner may see them;
// nil if there are none.
func (e *Engine) ShownStates(ctx context.Context, key store.ThreadKey, st *thread.State) (json.RawMessage, error) {
	return e.schemas.shown(ctx, key, st)
}

// Left reports whether this process owns a thread whose run it has given up.
func (e *Engine) Left(head *store.Head) bool {
	return head.Process == e.process && e.residents.local(head.Key) == nil
}
