package loop

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/pace"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The parts of an Engine, and the meaning of its settings. The server has their defaults.

// Frequency says which of a run's checkpoints are listed. The head moves in every commit
// in any case.
type Frequency string

// The frequencies.
const (
	PerIteration Frequency = "per_iteration" // one after each iteration
	PerTurn      Frequency = "per_turn"      // one at the beginning and at the end of a run
	Manual       Frequency = "manual"        // none but those that are asked for, by a tool, a hook or a person
)

// Circuit knows of each model whether it is broken. It never ends a run: if the circuits of
// all of an agent's models are open, one of them is still asked.
type Circuit interface {
	// Open is asked about the other models after a call that failed. It reports whether the
	// model should not be asked, and until when. It changes nothing.
	Open(model string) (until time.Time, open bool)
	// Begin is asked before a call, like Open. If the circuit is not open, the model is asked
	// now, and if a request must try the model first, this is the one.
	Begin(model string) (until time.Time, open bool)
	// Report tells of each call how it ended; the kind is empty for an answer. retryAfter is
	// how long the provider asked to wait. Calls that were cancelled are not told.
	Report(model string, kind failure.Kind, retryAfter time.Duration)
}

// closed is the circuit of an engine without one.
type closed struct{}

func (closed) Open(string) (time.Time, bool) { return time.Time{}, false }

func (closed) Begin(string) (time.Time, bool) { return time.Time{}, false }

func (closed) Report(string, failure.Kind, time.Duration) {}

// SchemaMode is what happens to a run whose checkpoint was written with other middleware
// states than the agent has now.
type SchemaMode string

// The modes.
const (
	// SchemaWarn continues, and says what has changed in the log and in the stream.
	SchemaWarn SchemaMode = "warn"
	// SchemaFail refuses to continue before anything is written.
	SchemaFail SchemaMode = "fail"
	// SchemaSilent continues and says nothing.
	SchemaSilent SchemaMode = "silent"
)

// AutoWindow as Config.DeltaWindow has deltas wait for more while the store is slow (see
// [journal.Slowness]).
const AutoWindow time.Duration = -1

// Config is what an Engine needs. Every field must be set, except where it says
// otherwise.
type Config struct {
	Store store.Store // holds all threads
	// Memory makes an empty store in memory, for a side run.
	Memory func() store.Store
	Agents []holdfast.Agent // the first is the default
	// Recover continues runs that a crash cut off. Without it they end with RUN_ERROR
	// cut_off and wait for an empty-messages POST.
	Recover bool
	// OnRevision is Adopt or Pin, for agents that do not say it themselves; empty means Adopt.
	OnRevision string
	// PinTimeout is how long a run waits for a process with its agent, or its agent's revision.
	PinTimeout time.Duration
	// Frequency says which checkpoints are listed.
	Frequency Frequency
	// KeepCheckpoints is how many checkpoints of a thread stay listed; all if it is not
	// positive.
	KeepCheckpoints int
	// NoPendingWrites saves the results of pure and idempotent tools when all calls of their
	// answer are done, not the moment they exist. The results of other tools are always
	// saved at once.
	NoPendingWrites bool
	// Alone means that no other process can have the store open.
	Alone bool
	// DataFormat is the data format that the process asks the others to write; 0 for none.
	DataFormat int
	// FormatAgreed is told of each agreement on the data format. It may be nil.
	FormatAgreed func(dataformat.Status)
	// Lease is how long a process that says nothing counts as alive.
	Lease time.Duration
	// Heavy are the turns of work that takes a processor for long; nil means turns of its own.
	Heavy *turns.Turns
	// MaxRuns bounds the runs of this process at a time.
	MaxRuns int
	// Limits are those of tenants and users; nil means that there are none.
	Limits *quota.Limiter
	// MaxParallelTools bounds the calls of one iteration that run at a time.
	MaxParallelTools int
	// ModelTries is how often one model is tried for an answer, at most.
	ModelTries int
	// ModelTriesOf is ModelTries for single agents, by name; it may be nil.
	ModelTriesOf map[string]int
	// Circuit says which models others have found broken; nil means that nobody knows.
	Circuit Circuit
	// Pace has the model calls wait that runs repeat which were taken over; nil means lines of its
	// own.
	Pace *pace.Lines
	// Random returns numbers from 0 up to 1, which spread the tries of many runs. It may be
	// nil.
	Random func() float64
	// MaxMedia bounds the images and other media of an answer, in bytes of base64; what is
	// beyond it is left out. 0 means no bound.
	MaxMedia int
	// MaxMediaOf is MaxMedia for single agents, by name; it may be nil.
	MaxMediaOf map[string]int
	// Durability is what the store's commits survive; empty if that is not known.
	Durability store.Level
	// StoreTimeout is how long a run waits for a store that does not answer. Then this
	// process gives it up, and it is taken over later.
	StoreTimeout time.Duration
	// StopOnStoreFailure gives a run up at the first commit that fails.
	StopOnStoreFailure bool
	// SchemaMode is what happens to a run whose checkpoint was written with other
	// middleware states; empty means SchemaWarn.
	SchemaMode SchemaMode
	// ResetNewerStates gives a state of a version that is not known here its initial
	// value, and sets the newer one aside. Without it the run is refused.
	ResetNewerStates bool
	// BufferBytes bounds the deltas of a run that wait to be committed, in bytes.
	BufferBytes int
	// DeltaWindow is how long a model's deltas may wait for more before they are
	// committed and shown; 0 means not at all, AutoWindow as long as the store is slow.
	DeltaWindow time.Duration
	// KeepAlive is how long a stream may be silent; then it yields an empty slice of
	// frames.
	KeepAlive time.Duration
	// MaxSnapshot is the size of a MESSAGES_SNAPSHOT, in bytes, above which it has no more
	// images of models; 0 means as much as stock clients take.
	MaxSnapshot int
	// TailBytes bounds the acknowledged records of a run that are kept in memory for its
	// watchers, in bytes.
	TailBytes int
	// WarnBytes is the size of a thread, in bytes, above which a run on it says so once;
	// 0 means no bound.
	WarnBytes int64
	// MaxBytes is the size of a thread, in bytes, above which a run on it stops; nothing
	// is lost. 0 means no bound.
	MaxBytes int64
	// Authorize is asked before a run starts, continues or is shown: with [access.Run],
	// [access.Answer] or [access.Approve] and the agent, or with [access.Read]. Its error
	// refuses. nil allows everything.
	Authorize func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error
	// FinishURL returns the one-time URL with a token, for calls that are finished from
	// outside. It may be nil if no tool hands out URLs.
	FinishURL func(token string) string
	// Pause is called before a run's writer takes what it commits next; see
	// journal.Config. It is nil in a server.
	Pause func(store.ThreadKey)
	// Waited is called where several may go on at the same moment: a request that has waited for
	// news of a run's owner, or a stream for the end of a run here, a call that must find out
	// whether it may start, and a sweep. what is the thread, or the call. It is nil in a server.
	Waited func(ctx context.Context, what string)
	// Ended is called when a run of the thread has ended in this process. It must not
	// block. It may be nil.
	Ended func(store.ThreadKey)
	Log   *slog.Logger // where failures and takeovers are logged
	Now   clock.Shared // the clock for stamps; nothing is measured by it
	// NewID returns a random id, unique and unguessable; prefix says what it is for.
	NewID func(prefix string) string
	// Observer is called when something happens. Each of its functions may be nil.
	Observer observe.Observer
}
