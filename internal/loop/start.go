package loop

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The preparation of a run: from what it starts with to a run that can begin.

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
	Shared thread.Shared
	// Recorded are the results that calls may get instead of running, by thread.CallHash.
	Recorded map[string][]store.Value
	// Doubted are the ids of the calls that an owner that died had started.
	Doubted map[string]bool
	// Live holds the middleware's states.
	Live *state.Live
	// Resumed means that the run, or the one that it continues, was begun before.
	Resumed bool
	// TakenOver means that the run has begun in another process.
	TakenOver bool
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
		shared:    shared{version: s.Shared},
		recorded:  s.Recorded,
		doubted:   s.Doubted,
		live:      s.Live,
		resumed:   s.Resumed,
		repeats:   s.TakenOver,
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

// moreMessages is how many messages more than its history a run has room for at once.
const moreMessages = 4

// prepare sets up what the run needs to start. first are the records of its first commit
// in this process, and head is the head after it.
func (r *run) prepare(head *store.Head, first []store.Record) {
	r.key = head.Key
	r.feed = journal.NewFeed(r.host.Config.TailBytes)
	r.feed.Append(first)
	r.stored = head.State
	r.labels.begin(r.st.Marked)
	r.over, r.arrivals.came = make(chan struct{}), make(chan struct{}, 1)
	r.keeps = keeps{
		values: make(chan kept),
		over:   r.over,
		flush:  func(ctx context.Context) error { return r.w.Flush(ctx) },
	}
	r.started, r.log = clock.Now(), headers.LogTrace(r.host.Config.Log, r.rec.Traceparent)
	r.ctx, r.cancel = context.WithCancelCause(r.host.Context)
	r.ctx = store.ContextWithLedger(state.ContextWith(r.ctx, r.live), r.host.Config.Store)
	r.ctx = holdfast.ContextWithRun(r.ctx, &holdfast.RunContext{
		Notify:    r.notify,
		Iteration: func() holdfast.Iteration { return *r.at.Load() },
		Record:    r.notes.add,
		History:   r.notes.history,
		Keep:      r.keeps.save,
		Mark:      r.labels.add,
	})
	r.activities.begin()
	r.steps.begin(r.activities.tell, func(ev agui.Event) error { return r.w.Add([]agui.Event{ev}, journal.Soon, nil) },
		r.now)
	r.ctx = activity.ContextWith(r.ctx, &activity.Run{Show: r.activities.show, Step: r.steps.step})
	if r.cancelled {
		r.cancel(errCancelled)
	}
	r.inner, r.chain = r.ctx, r.agent.Hooks
	r.models = r.agent.Models
	r.model = r.models.Find(r.st.Model)
	r.st.Follow(r.live)
	r.notes.room = len(r.hist.Path) + moreMessages
	r.messages = make([]holdfast.Message, 0, r.notes.room)
	for i := range r.hist.Path {
		r.activities.learn(&r.hist.Path[i])
		r.remember(i)
	}
	r.activities.apply(&r.notes)
	r.stale = r.resumed && !reasons(r.hist.Path)
	r.moveTo(r.st.Iteration)
	r.results, r.counted = r.kept(), r.st.Bytes
	if r.tools.Load() == nil { // it has begun elsewhere
		r.tools.Store(r.agent.Toolboxes.Now())
	}
	if r.resumed {
		r.inherited = map[string]bool{}
		for i := range r.st.Calls {
			r.inherited[r.st.Calls[i].ID] = true
		}
	}
}

// writerConfig returns what the run's journal needs. asked is when the commit was sent that made
// this process the owner.
func (r *run) writerConfig(asked clock.Moment) journal.Config {
	cfg := &r.host.Config
	var pause func()
	if cfg.Pause != nil {
		pause = func() { cfg.Pause(r.key) }
	}
	return journal.Config{
		Process:    r.host.Process,
		Now:        cfg.Now,
		Asked:      asked,
		NewID:      cfg.NewID,
		Shown:      r.feed.Append,
		Back:       r.storeBack,
		Commit:     func(ctx context.Context, c *store.Commit) error { return r.host.Commit(ctx, r.place(), c) },
		Go:         r.host.Writers.Go,
		GiveUp:     cfg.StoreTimeout,
		Limit:      cfg.BufferBytes,
		Window:     max(cfg.DeltaWindow, 0),
		Slowness:   r.host.slowness,
		StopAtOnce: cfg.StopOnStoreFailure,
		Pause:      pause,
	}
}

// storeBack logs that the store answers again. The observer has seen each try that failed.
func (r *run) storeBack(outage time.Duration) {
	r.log.Warn("the store is back",
		"thread", r.key.Thread, "run", r.rec.ID, "iteration", r.number.Load(), "outage", outage)
}

// kept counts the finished results that a resumed run found of the iteration it continues.
// While calls are open these are all of the last results; otherwise only those that no
// checkpoint holds yet, whose calls still have an intent.
func (r *run) kept() int {
	n := 0
	for i := len(r.hist.Path) - 1; r.resumed && i >= 0; i-- {
		if thread.Aside(&r.hist.Path[i]) {
			continue
		}
		if r.hist.Path[i].Role != string(holdfast.RoleTool) {
			break
		}
		if len(r.st.Calls) > 0 || r.doubted[r.hist.Path[i].ToolCallID] {
			n++
		}
	}
	return n
}
