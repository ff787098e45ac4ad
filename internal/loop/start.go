package loop

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Start is what a run begins with in this process, or goes on with.
type Start struct {
	Key   store.ThreadKey
	Rec   *thread.Run // how it began, as it is stored
	Agent *agents.Agent
	// Tools are those that its request was decided with; nil for those that there are now.
	Tools   *agents.Toolbox
	State   *thread.State
	History *thread.History
	// Shared is the state that clients and tools share.
	Shared json.RawMessage
	// Recorded are the results that calls may get instead of running, by thread.CallHash.
	Recorded map[string][]store.Value
	// Doubted are the ids of the calls that an owner that died had started.
	Doubted map[string]bool
	// Live holds the middleware's states.
	Live *state.Live
	// Resumed means that the run, or the one that it continues, was begun before.
	Resumed bool
	// Side means that the run is stored nowhere, and makes one answer.
	Side bool
	// Cancelled means that the run is continued only to be ended.
	Cancelled bool
}

// Ground gives the run what was read of its thread.
func (s *Start) Ground(g thread.Ground) {
	s.History, s.Shared, s.Recorded = g.History, g.Shared, g.Recorded
}

// run returns the run, not prepared.
func (s *Start) run(h *Host) *run {
	r := &run{
		host:      h,
		key:       s.Key,
		rec:       s.Rec,
		agent:     s.Agent,
		st:        s.State,
		hist:      s.History,
		shared:    s.Shared,
		recorded:  s.Recorded,
		doubted:   s.Doubted,
		live:      s.Live,
		resumed:   s.Resumed,
		side:      s.Side,
		cancelled: s.Cancelled,
	}
	r.tools.Store(s.Tools)
	return r
}

// Closing returns the result of a call that is closed before the run begins: what has come for
// it, or text.
func (s *Start) Closing(ctx context.Context, h *Host, call *thread.Call, text string) holdfast.ToolResult {
	return closingResult(ctx, s.run(h), call, text)
}

// Run is a run in this process, until it ends here or is left to another one.
type Run struct {
	run  *run
	head *store.Head // after its first commit in this process
}

// New returns a run, which begins with Begin. head is the head after its first commit in
// this process, and first are the records of that.
func New(h *Host, s *Start, head *store.Head, first []store.Record) *Run {
	r := s.run(h)
	r.prepare(head, first)
	return &Run{run: r, head: head}
}

// Begin gives the run its journal: from now on it can be watched and written to. asked is when
// the commit was sent that made this process the owner, and seq is the stream after it.
func (r *Run) Begin(asked clock.Moment, seq agui.Sequencer) {
	x := r.run
	x.w = journal.New(x.writerConfig(asked), r.head, seq)
	x.owner = owner{
		ctx:   x.ctx,
		cfg:   &x.host.Config,
		lease: x.host.lease,
		w:     x.w,
		key:   x.key,
		leave: x.cancel,
		sole:  x.side,
	}
	x.host.Config.Observer.RunStarted(x.place(), x.resumed, x.results)
}

// Main runs it to its end in this process.
func (r *Run) Main() { r.run.main() }

// ReadInbox takes what has come for it since the inbox was last read.
func (r *Run) ReadInbox() { mail{r.run}.read() }

// Cancel ends the run with a cause.
func (r *Run) Cancel(cause error) { r.run.cancel(cause) }

// Spec returns the specification of one of its tools; the zero one of a tool that it does not
// have.
func (r *Run) Spec(tool string) holdfast.ToolSpec { return r.run.tools.Spec(tool) }

// Feed returns what its watchers read.
func (r *Run) Feed() *journal.Feed { return r.run.feed }

// PassOn hands the run over instead of beginning it here.
func (r *Run) PassOn() { r.run.passOn(r.head) }
