package loop

import (
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
)

// Frequency says which loop checkpoints are listed. The head moves in every
// commit whatever it is.
type Frequency string

// The frequencies.
const (
	PerIteration Frequency = "per_iteration"
	PerTurn      Frequency = "per_turn"
	Manual       Frequency = "manual"
)

// Config is what an Engine needs. Every member must be set, except where it
// says otherwise.
type Config struct {
	Store  holdfast.Store
	Agents []holdfast.Agent // the first is the default
	// Recover: runs cut off by a crash are continued; else they are ended with
	// RUN_ERROR cut_off and wait for an empty-messages POST.
	Recover   bool
	Frequency Frequency
	// KeepCheckpoints is how many checkpoints of a thread stay listed.
	KeepCheckpoints int
	// NoPendingWrites: results of pure and idempotent tools are saved when all
	// calls of their answer are done, not the moment they exist. Those of others
	// always are.
	NoPendingWrites bool
	// Lease is how long a silent process counts as alive.
	Lease time.Duration
	// MaxRuns bounds the runs of this process at a time, MaxParallelTools the
	// calls of one iteration that run at a time.
	MaxRuns          int
	MaxParallelTools int
	// ModelTries is how often a model call is tried in all; ModelTriesOf is that of
	// single agents, by name.
	ModelTries   int
	ModelTriesOf map[string]int
	// StoreTimeout is how long a run waits for a store that does not answer
	// before it is given up here, to be recovered later.
	StoreTimeout time.Duration
	// StopOnStoreFailure gives a run up at the first commit that fails.
	StopOnStoreFailure bool
	// SchemaMode is what becomes of a run whose checkpoint was written with other
	// middleware states; empty means SchemaWarn. ResetNewerStates: a state of a
	// version that is not known here begins anew, and the newer one is set aside;
	// else the run is refused.
	SchemaMode       SchemaMode
	ResetNewerStates bool
	// BufferBytes bounds the deltas of a run that wait to be committed, and
	// TailBytes the acknowledged records kept in memory for its watchers.
	BufferBytes int
	// DeltaWindow is how long a model's deltas may wait for more before they are
	// committed and shown; 0: not at all.
	DeltaWindow time.Duration
	// KeepAlive is how long a stream may be silent; then it yields an empty
	// batch.
	KeepAlive time.Duration
	TailBytes int
	// WarnBytes and MaxBytes bound a thread; 0 is no bound. A run on a thread with
	// more than the first says so once; with more than the second it stops, and
	// nothing is lost.
	WarnBytes int64
	MaxBytes  int64
	// Ended is called when a run of the thread has ended here, and must return at once;
	// nil: nobody needs to know.
	Ended func(holdfast.ThreadKey)
	Log   *slog.Logger
	Now   func() time.Time
	// NewID makes a random id, unique and unguessable; prefix says of what.
	NewID func(prefix string) string
	// Observer says what happens. Each of its functions may be nil.
	Observer observe.Observer
}
