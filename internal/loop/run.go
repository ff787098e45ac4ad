package loop

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A run while this process owns it. Its goroutine iterates (iterate.go) and is the only one
// that changes the thread's state; everything it produces goes through its journal to the
// store. However the goroutine ends, the thread has an end or a wait that the log shows, or no
// living owner, so that any process that finds it takes it over.

// run is one run in this process. Its goroutine owns the thread: it alone changes st and
// hist, and it alone writes.
type run struct {
	host   *Host
	owner  owner // of the thread, as this process believes
	key    store.ThreadKey
	rec    *thread.Run
	agent  *agents.Agent
	tools  agents.RunTools
	st     *thread.State
	hist   *thread.History
	shared []byte
	// messages are the history as models see it.
	messages []holdfast.Message
	notes    notes
	labels   labels
	// hidden are the ids of the calls that are not among them, because their messages are
	// not; see show.
	hidden map[string]bool
	// imported counts the messages of the history that a client brought. Other goroutines
	// read it in place.
	imported atomic.Int64
	// inherited are the ids of the calls that were open when the run was continued here, until
	// their tools were waited for.
	inherited map[string]bool
	// doubted are the ids of the calls that an owner that died had started.
	doubted map[string]bool
	// starts are the calls that were started here.
	starts  starts
	w       *journal.Writer
	feed    *journal.Feed
	ctx     context.Context
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when it has ended here
	started clock.Moment
	// busy means that calls of the run go on although it has been cut off.
	busy    bool
	log     *slog.Logger // with the id of the run's trace, if it has one
	resumed bool
	side    bool // see SideRun
	// cancelled means that the run is continued only to be ended.
	cancelled bool
	// failed is the answer in whose middle the run has failed; nil if there is none.
	failed *completion
	// stale means that clients may show reasoning that was taken back; see mend.
	stale bool
	chain *hooks.Chain
	// models are those of the agent, and model is the place of the one that is asked.
	models fallback.Chain
	model  int
	// tried counts the tries of the last model call.
	tried int
	// inner is ctx with what the Run hooks put into it.
	inner context.Context
	// at is where the run stands, for hooks and tools.
	at atomic.Pointer[holdfast.Iteration]
	// live holds the middleware's states.
	live *state.Live
	// number is st.Iteration, for other goroutines.
	number atomic.Int64
	// recorded are the results that calls may get instead of running, by
	// thread.CallHash.
	recorded map[string][]store.Value
	// counted is how many of st.Bytes are counted for the limits of the tenant and the user.
	counted int64
	// warned means that the run has said that its thread is large.
	warned bool
	// results counts the results that no checkpoint holds yet.
	results int
	// marks tracks the intents and pending writes that the store holds.
	marks marks
	inbox inbox
	keeps keeps
	// arrivals are what has come from outside for the run's calls.
	arrivals arrivals
	// stored is the state as it was last given to the writer, in whose turn it changes.
	stored []byte
}

// errCancelled is the cause of a run that its user cancelled.
var errCancelled = holdfast.ErrCancelled

// prepare sets up what the run needs to start. first are the records of its first commit
// in this process, and head is the head after it.
func (r *run) prepare(head *store.Head, first []store.Record) {
	r.key = head.Key
	r.feed = journal.NewFeed(r.host.Config.TailBytes)
	r.feed.Append(first)
	r.stored = head.State
	r.labels.begin(r.st.Marked)
	r.over, r.keeps, r.arrivals.came = make(
		chan struct{},
	), keeps{
		run:    r,
		values: make(chan kept),
	}, make(
		chan struct{},
		1,
	)
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
	if r.cancelled {
		r.cancel(errCancelled)
	}
	r.inner, r.chain = r.ctx, r.agent.Hooks
	r.models = r.agent.Models
	r.model = r.models.Find(r.st.Model)
	r.st.Follow(r.live)
	for i := range r.hist.Path {
		r.remember(&r.hist.Path[i])
	}
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
		Window:     cfg.DeltaWindow,
		StopAtOnce: cfg.StopOnStoreFailure,
	}
}

// remember adds a message to what models see.
func (r *run) remember(m *agui.Message) {
	d, err := m.Domain()
	if err != nil || thread.Failed(m) {
		return
	}
	if d.Role == holdfast.RoleActivity {
		if !r.notes.remember(&r.messages, m) {
			r.notes.grow(r.messages, &d)
		}
		return
	}
	if d.Imported {
		r.imported.Add(1)
	}
	if d, shown := r.show(d); shown {
		for _, d := range append([]holdfast.Message{d}, behind(m)...) {
			r.messages = append(r.messages, d)
			r.notes.grow(r.messages, &d)
		}
	}
}

// show returns a message as the agent's model is shown it, and whether it is shown at all.
// The agent's policy for clients was applied when the message came in, but that may have
// been another agent, or another configuration, so it counts here once more. Calls and
// their results are shown together or not at all.
func (r *run) show(m holdfast.Message) (holdfast.Message, bool) {
	p := &r.agent.Client
	takes := p.Import == "" || p.Import == thread.ImportAll
	switch {
	case decide.Instructs(m.Role):
		if !takes || p.Instructions == thread.ShowNothing {
			return m, false
		}
		if p.Instructions == thread.ShowAsUser {
			m.Role, m.Text, m.Parts = holdfast.RoleUser, hooks.ClientText(hooks.ClientInstructions, m.PlainText()), nil
		}
	case m.Role == holdfast.RoleTool:
		if r.hidden[m.CallID] {
			return m, false
		}
	case m.Imported && !takes:
		if r.hidden == nil {
			r.hidden = map[string]bool{}
		}
		for _, c := range m.Calls {
			r.hidden[c.ID] = true
		}
		return m, false
	}
	if m.Imported || m.Role == holdfast.RoleUser {
		m = decide.Withhold(m, p)
	}
	return m, true
}

// main is the run's goroutine.
func (r *run) main() {
	routine.WarmStack()
	if err := r.guard(); err != nil {
		r.conclude(err)
	}
	r.cancel(nil)
	close(r.over)
}

// conclude brings a run to its end after an error, or leaves it to another process.
func (r *run) conclude(err error) {
	if err = r.end(err); err != nil {
		// The run stops here without an end in the log, because the server stops, or the
		// fence or the store is lost. It continues from the thread's head elsewhere.
		r.leave(err)
		r.host.Config.Observer.RunEnded(r.place(), observe.OutcomeLeft, "", r.started.Ran())
		r.log.Info("run left to be recovered", "thread", r.key.Thread, "run", r.rec.ID, "reason", err)
	}
}

// LastCommit is how long a run that was cut off may try to commit what it has finished: a
// store that does not answer must not keep the process.
const LastCommit = 3 * time.Second / 4

// leave stops the journal. At a shutdown it first commits what is finished, with this
// process still named as the owner, and then hands the thread over, unless calls still go on
// here that the next owner would make again.
func (r *run) leave(cause error) {
	if errors.Is(cause, ErrStopped) {
		// If this cannot be committed, the calls stay in doubt.
		_ = r.w.Add(nil, journal.WithNext, func(c *store.Commit, _ store.Cursor) { intents{r}.takeBack(c, r.w.Fence) })
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), LastCommit)
		defer cancel()
		if err := r.w.Close(ctx, r.host.Process); err == nil {
			if !r.busy {
				r.host.handOver(r.key)
			}
			return
		}
	}
	r.w.Abandon(cause)
}

// storeBack logs that the store answers again. The observer has seen each try that failed.
func (r *run) storeBack(outage time.Duration) {
	r.log.Warn("the store is back",
		"thread", r.key.Thread, "run", r.rec.ID, "iteration", r.number.Load(), "outage", outage)
}

// guard runs the run through the Run hooks to its end, and turns a panic of this package
// into an error.
func (r *run) guard() (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic in a run",
				"thread", r.key.Thread, "run", r.rec.ID, "panic", p, "stack", string(debug.Stack()))
			err = holdfast.AsError(errors.New("panic"))
		}
	}()
	var end *conclusion
	run := r.chain.Around(func(ctx context.Context, _ *holdfast.Iteration) (string, error) {
		if r.inner = ctx; r.cancelled {
			return "", errCancelled // nothing may start
		}
		var err error
		if end, err = r.iterate(); err == nil && r.side {
			end, err = end.alone()
		}
		if err != nil {
			return "", err
		}
		return string(end.shown.Type), nil
	})
	if _, err := run(r.ctx, r.at.Load()); err != nil {
		return err
	}
	if end == nil {
		return holdfast.Errorf(codes.MiddlewareFailed, "A middleware has ended the run without a reason.").
			WithHint("A Run hook calls next, or returns an error that says why it does not.")
	}
	return r.finish(end)
}

// completed reports whether the history ends in an answer without open calls. It is asked
// before anything else, because an owner may have died right after committing the
// answer. An answer may end in reasoning, and activities may follow it. One that has failed, or
// was kept although it does not have its form, is no end.
func (r *run) completed() bool {
	leaf := len(r.hist.Path) - 1
	for leaf >= 0 && (r.hist.Path[leaf].Role == string(holdfast.RoleReasoning) || thread.Aside(&r.hist.Path[leaf])) {
		leaf--
	}
	return leaf >= 0 && len(r.st.Calls) == 0 && r.hist.Path[leaf].Role == string(holdfast.RoleAssistant) &&
		thread.MisfitOf(&r.hist.Path[leaf]) == nil
}

// moveTo sets where the run stands, for hooks and tools.
func (r *run) moveTo(iteration int) {
	r.number.Store(int64(iteration))
	at := &holdfast.Iteration{
		Agent:       r.rec.Agent,
		Principal:   r.principal(),
		Thread:      r.key.Thread,
		Incarnation: r.st.Incarnation,
		Rewinds:     r.st.Rewinds,
		Run:         r.rec.ID,
		Number:      iteration,
		Granted:     iteration - r.st.GrantedAt,
		Imported:    int(r.imported.Load()),
		Traceparent: r.rec.Traceparent,
		Side:        r.side,
	}
	if r.st.Question != nil {
		at.Answer = handed(r.st.Question.Answer, r.st.Question.Interrupt)
	}
	r.at.Store(at)
}

// principal returns for whom the run runs.
func (r *run) principal() holdfast.Principal {
	return holdfast.Principal{Tenant: r.key.Tenant, User: r.rec.User}
}

// checkpoint lists the state between two iterations. It does not wait: what follows is
// committed with it or after it.
func (r *run) checkpoint() error {
	return r.w.Add(nil, journal.Soon, func(c *store.Commit, last store.Cursor) {
		r.st.Boundary = last
		r.listCheckpoint(c, r.labels.take(false), r.host.Config.Frequency == PerIteration)
		r.marks.clear(c)
		r.countBytes()
		r.saveState(c)
	})
}

// listCheckpoint adds a checkpoint of the state to a commit, if the frequency asks for one here, or
// a label does.
func (r *run) listCheckpoint(c *store.Commit, label string, frequent bool) {
	if r.st.Marked = label; frequent || label != "" {
		thread.AddCheckpoint(
			c,
			r.st,
			thread.SourceLoop,
			r.st.Iteration,
			r.host.Config.Now().Time(),
			r.host.Config.KeepCheckpoints,
		)
	}
}

// finish ends the run with RUN_FINISHED, as its conclusion says.
func (r *run) finish(end *conclusion) error {
	ev := agui.RunFinished{
		ThreadID: r.key.Thread,
		RunID:    r.rec.ID,
		Result:   resultOf(r.hist, r.st.Output, end),
		Outcome:  end.shown,
		Usage:    r.st.Usage,
	}
	ev.Timestamp, ev.Metadata = r.now(), thread.OutsideMetadata(r.st.OutsideCalls())
	return r.close(ev, end.move(r.st), thread.OutsideNotice(r.st.OutsideCalls(), r.now())...)
}

// close ends the run with its last event, what is to be said before it, its state and the final
// checkpoint in one commit, and waits for it. moved is the error of the state's transition.
func (r *run) close(ev agui.Event, moved error, before ...agui.Event) error {
	if moved != nil {
		return moved
	}
	r.st.Ending = nil
	activities, shown := growth{r}.recorded(true)
	failed, err := r.keepFailed()
	if err != nil {
		return err
	}
	stored := growth{r}.plant(append(failed, activities...))
	if r.failed != nil {
		shown = append(shown, agui.MessagesRef{Leaf: r.st.Leaf}) // it shows the mark, and removes what was not kept
	}
	err = r.w.Finish(
		context.WithoutCancel(r.ctx),
		append(append(shown, before...), ev),
		func(c *store.Commit, last store.Cursor) {
			c.Messages = append(c.Messages, stored...)
			r.st.Boundary = last
			r.countBytes()
			r.listCheckpoint(c, r.labels.take(true), r.host.Config.Frequency != Manual)
			// A thread that is stopped or waits still needs them.
			if r.st.Status() == threads.StatusIdle {
				r.marks.clear(c)
			} else {
				intents{r}.takeBack(c, r.w.Fence)
			}
			c.InboxSeen = r.inbox.seen
			thread.PutRunEnd(c, r.rec.ID, r.st.RunEnd(r.host.Config.Now().Time(), last.Number))
			r.saveState(c)
		},
	)
	if err != nil {
		return err
	}
	r.host.Config.Observer.RunEnded(r.place(), r.st.Outcome(), r.st.Code(), r.started.Ran())
	r.host.Config.Ended(r.key)
	return nil
}

// end brings a run to its end after an error. It returns an error if it cannot: the log
// cannot be written, or another process is to continue the run.
func (r *run) end(cause error) error {
	if c := context.Cause(r.ctx); c != nil {
		cause = c
	}
	switch {
	case errors.Is(cause, ErrStopped),
		errors.Is(cause, store.ErrFenced),
		errors.Is(cause, store.ErrConflict),
		errors.Is(cause, journal.ErrClosed):
		return cause
	case errors.Is(cause, errCancelled):
		return r.endCancelled()
	}
	pub := publicError(cause)
	attrs := []any{"thread", r.key.Thread, "run", r.rec.ID, "iteration", r.st.Iteration, "code", pub.Code}
	r.log.Warn("run failed", append(append(attrs, r.modelAttrs(cause)...), "error", cause)...)
	ev := agui.NewRunError(pub)
	ev.Usage, ev.Timestamp = r.st.Usage, r.now()
	return r.close(ev, r.st.Stop(pub))
}

// now returns the time for events, in milliseconds since 1970.
func (r *run) now() int64 { return r.host.Config.Now().UnixMilli() }

// append adds messages to the tree, each following the one before from the leaf on, in one
// commit with the events and with whatever more adds. It does not wait.
func (r *run) append(
	messages []agui.Message,
	events []agui.Event,
	u journal.Urgency,
	more func(c *store.Commit),
) error {
	stored := growth{r}.plant(messages)
	return r.w.Add(events, u, func(c *store.Commit, last store.Cursor) {
		r.st.Boundary = last
		c.Messages = append(c.Messages, stored...)
		if more != nil {
			more(c)
		}
		r.saveState(c)
	})
}

// place returns where the run stands. Other goroutines may call it too.
func (r *run) place() holdfast.Iteration {
	return holdfast.Iteration{
		Agent:       r.rec.Agent,
		Principal:   r.principal(),
		Thread:      r.key.Thread,
		Run:         r.rec.ID,
		Number:      int(r.number.Load()),
		Imported:    int(r.imported.Load()),
		Traceparent: r.rec.Traceparent,
	}
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

// nextIteration moves the run to the next iteration.
func (r *run) nextIteration() {
	r.host.Config.Observer.IterationDone(r.place(), r.results)
	r.st.Iteration++
	r.moveTo(r.st.Iteration)
	r.results = 0
	r.starts.forget()
}
