// Package upkeep works on threads that do not run. It shows them, their runs and checkpoints,
// takes them back, forks, prunes and deletes them at a user's request, and by itself archives
// the logs of ended runs, enforces retention and completes the index. A change is a commit that does not touch the
// thread's fence: only the owner of a run writes while it runs, so a Keeper refuses or leaves
// alone a thread that runs, but for its title, which it has the owner change. It uses the
// engine through a small interface.
package upkeep

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/indexing"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Config is what a Keeper needs. Every field must be set, except where it says otherwise.
type Config struct {
	Store  store.Store // holds all threads
	Engine Engine      // runs them
	// KeepCheckpoints is how many checkpoints of a thread stay listed; all if it is not
	// positive.
	KeepCheckpoints int
	// ArchiveAfter is how long after the end of a run its log stays in the live log.
	ArchiveAfter time.Duration
	// Archivers is how many logs are archived at a time; 0 means eight.
	Archivers int
	// Retention is what is removed; the zero value keeps everything.
	Retention Retention
	// Limits are those of tenants and users; nil means that there are none.
	Limits *quota.Limiter
	Log    *slog.Logger // where deletions and failures are logged
	Now    clock.Shared // the clock for stamps
	// NewID returns a random id, unique and unguessable; prefix says what it is for.
	NewID func(prefix string) string
	// CheckState returns an error for a shared state that a thread of that agent may not have.
	// Optional.
	CheckState func(ctx context.Context, agent string, state json.RawMessage) error
	// Cleaned is called when retention has finished with a thread; usually nothing was
	// due.
	Cleaned func(threads.Cleaned)
	// Walked is called when retention has come past all threads; so many cannot be read.
	Walked func(unreadable int)
	// IndexLooked is called for each page of threads that were found in the index, and after each look
	// without any. Optional.
	IndexLooked func(IndexLook)
	// Price returns usage with what it costs, and the sum. Optional: without it nothing has a
	// price.
	Price func(usage []holdfast.Usage) (list []threads.Usage, sum json.Number)
}

// Engine is what a Keeper needs of the engine that runs threads.
type Engine interface {
	indexing.Engine
	// Current reads the head of the caller's thread, which must exist, and makes sure
	// that a thread that claims to run has a living owner.
	Current(ctx context.Context, who holdfast.Principal, id string) (*thread.Thread, error)
	// Running returns how many runs this process has.
	Running() int
	// Left reports whether this process owns a thread whose run it has given up.
	Left(head *store.Head) bool
	// Amend has the owner of the thread's run change what only it may change, and waits until
	// that is stored. It reports false if the run has ended before that.
	Amend(ctx context.Context, t *thread.Thread, a thread.Amendment) (bool, error)
	// PatchState has the owner of the thread's run change the shared state, and waits until that is
	// stored. It returns the name of the version after that, and false if the run has ended before.
	PatchState(ctx context.Context, t *thread.Thread, p thread.StatePatch) (string, bool, error)
	// GoOn begins a run on a thread whose calls from outside have all ended, if nobody has.
	GoOn(ctx context.Context, key store.ThreadKey) error
	// Tools returns the specifications of an agent's tools.
	Tools(agent string) []holdfast.ToolSpec
	// ShownStates returns the middleware's states in st as the thread's owner may see
	// them; nil if there are none.
	ShownStates(ctx context.Context, key store.ThreadKey, st *thread.State) (json.RawMessage, error)
}

// Keeper looks after threads that do not run. A process has one.
type Keeper struct {
	cfg      Config
	engine   Engine
	read     thread.Reader
	counting counting
	lag      lag
	indexing *indexing.Walk
	finished *line // see ArchiveSoon

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // the goroutines of Start
}

// New returns a Keeper. It serves requests at once; Start begins what it does by itself.
func New(cfg Config) *Keeper {
	k := &Keeper{
		cfg:      cfg,
		engine:   cfg.Engine,
		read:     thread.Reader{Store: cfg.Store},
		finished: newLine(),
	}
	if k.cfg.CheckState == nil {
		k.cfg.CheckState = func(context.Context, string, json.RawMessage) error { return nil }
	}
	k.counting = counting{&k.cfg, k.engine, k.read, k.ArchiveSoon}
	k.indexing = indexing.New(indexing.Config{
		Store:  cfg.Store,
		Engine: cfg.Engine,
		Log:    cfg.Log,
		Now:    cfg.Now,
		NewID:  cfg.NewID,
	})
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Index returns how far the index of the store is complete. Until it is, a list may lack threads that
// were last written by a version without an index.
func (k *Keeper) Index() indexing.Progress { return k.indexing.Progress() }

// IndexLag returns how much later than its time something was found, at most, that was due in the last
// minute.
func (k *Keeper) IndexLag() time.Duration { return k.lag.latest() }

// Stop ends what Start began, and waits for it. A log that is not archived by then is found
// by the next process.
func (k *Keeper) Stop() {
	k.stop()
	k.wg.Wait()
}
