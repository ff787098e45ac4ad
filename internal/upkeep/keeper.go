package upkeep

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Config is what a Keeper needs. Every member must be set, except where it
// says otherwise.
type Config struct {
	Store  holdfast.Store
	Engine Engine
	// KeepCheckpoints is how many checkpoints of a thread stay listed.
	KeepCheckpoints int
	// ArchiveAfter is how long the log of a run that has ended stays as it was
	// written.
	ArchiveAfter time.Duration
	Retention    Retention
	Log          *slog.Logger
	Now          func() time.Time
	// NewID makes a random id, unique and unguessable; prefix says of what.
	NewID func(prefix string) string
	// Cleaned is called when retention is done with a thread; most of the time nothing
	// was due.
	Cleaned func(holdfast.Cleaned)
}

// Engine is what a Keeper needs of the engine that runs threads.
type Engine interface {
	// Lock serialises what this process decides about one thread.
	Lock(key holdfast.ThreadKey) (unlock func())
	// Commit makes one try to commit, and tells the observer.
	Commit(ctx context.Context, at holdfast.Iteration, c *holdfast.Commit) error
	// Current reads the head of the caller's thread, which must exist, after it has
	// made sure that a thread which claims to run has a living owner.
	Current(ctx context.Context, who holdfast.Principal, id string) (*thread.Thread, error)
	// Agent returns the agent of that name.
	Agent(name string) (*holdfast.Agent, error)
	// ShownStates returns the states of the middleware in st as the thread's owner
	// may see them; nil if there are none.
	ShownStates(ctx context.Context, key holdfast.ThreadKey, st *thread.State) (json.RawMessage, error)
}

// Keeper looks after threads that do not run: it shows them, takes them back, forks,
// prunes and deletes them, and archives their logs. One process has one.
type Keeper struct {
	cfg      Config
	engine   Engine
	read     thread.Reader
	finished chan endedThread // see ArchiveSoon

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // what Start has started
}

// maxFinished bounds the threads that wait for their log to be archived.
const maxFinished = 8192

// New makes a Keeper. It serves requests at once; Start begins what it does by
// itself.
func New(cfg Config) *Keeper {
	k := &Keeper{cfg: cfg, engine: cfg.Engine, read: thread.Reader{Store: cfg.Store}, finished: make(chan endedThread, maxFinished)}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Start begins to archive logs and to enforce retention, until Stop.
func (k *Keeper) Start() {
	k.wg.Go(k.keepArchives)
	k.wg.Go(k.keepRetention)
}

// Stop ends what Start has begun, and waits for it. A log that is not archived yet is
// found by the process that starts next.
func (k *Keeper) Stop() {
	k.stop()
	k.wg.Wait()
}
