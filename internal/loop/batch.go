package loop

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The tool calls of one answer. Once the answer and the intents of its calls are durable,
// all calls start in parallel; each runs in a goroutine through the Tool hooks, and the
// run's goroutine saves each result the moment it exists (results.go). Some calls get
// their result without being started: decided by a hook, declined by a person, cut off
// by the model, in doubt (doubt.go), or recorded before a rewind (reuse.go).

// callTools runs the open calls in parallel and saves each result the moment it exists.
// It returns a conclusion if the run ends here, because a person is asked or the
// frontend has calls to answer.
func (r *run) callTools() (*conclusion, error) {
	if len(r.st.Calls) == 0 {
		return nil, nil
	}
	if err := r.w.Ready(r.ctx); err != nil {
		return nil, err
	}
	if err := (listener{r}).hear(); err != nil {
		return nil, err
	}
	b := &batch{
		r:        r,
		finished: make(chan finished, len(r.st.Calls)),
		awaited:  make(chan thread.Call, len(r.st.Calls)),
		slots:    make(chan struct{}, r.host.Config.MaxParallelTools),
		inFlight: map[string]context.CancelCauseFunc{},
	}
	for running := b.startAll(); running > 0; running = b.arrived() {
		if err := b.collect(running); err != nil {
			return nil, err
		}
	}
	if open := r.st.Interrupts(); len(open) > 0 {
		return asks(open), nil
	}
	// Calls that wait for somebody outside end the run in success: of an interrupt clients
	// would ask their user, whose answer would not count, and refuse to go on without one.
	ids, waiting := r.st.PendingFrontend(), r.st.OutsideCalls()
	if len(ids) > 0 && len(waiting) == 0 {
		r.host.Config.Observer.IterationDone(r.place(), r.results)
	}
	if len(ids)+len(waiting) > 0 {
		return succeeded(ids...), nil
	}
	return nil, nil
}

// batch is the open calls of an answer while they run.
type batch struct {
	r *run
	// finished receives what came of each call; slots bounds how many run at a time.
	finished chan finished
	slots    chan struct{}
	// awaited receives the calls whose tools were waited for.
	awaited chan thread.Call
	// inFlight cuts off the outside calls that are being handed out, by id.
	inFlight map[string]context.CancelCauseFunc
}

// startAll starts the calls that can be started, and returns how many will finish.
func (b *batch) startAll() (running int) {
	now := b.r.host.Config.Now().Time()
	for _, call := range b.r.st.Calls {
		// The frontend makes its calls itself, unless a hook has decided about one.
		if call.Frontend && call.Given == nil && call.Answer == nil || call.Waits() ||
			call.WaitsOutside() && !call.Expired(now) {
			continue
		}
		b.start(call)
		running++
	}
	return running
}

// start starts a call, or gives it a result without that.
func (b *batch) start(call thread.Call) {
	if f, recorded := b.reused(call); recorded && call.Given == nil && call.Answer == nil && call.Own == nil {
		b.r.host.Config.Observer.ToolCalled(b.r.place(), call.Name, observe.ToolReused, 0)
		b.finished <- f
		return
	}
	if b.awaits(&call) {
		return
	}
	f, given := b.given(call)
	if !given && b.r.st.OnlyRecorded && !call.Frontend && call.Outside == nil {
		f, given = b.notRecorded(call), true
	}
	if given {
		b.r.host.Config.Observer.ToolCalled(b.r.place(), call.Name, observe.ToolRefused, 0)
		b.finished <- f
		return
	}
	ctx, c := b.r.inner, toolCall(b.r, &call)
	if outsideOf(&b.r.tools, call.Name) != nil && call.Finished() == nil {
		var cut context.CancelCauseFunc
		ctx, cut = context.WithCancelCause(ctx)
		b.inFlight[call.ID] = cut
	}
	b.r.host.Tasks.Go(func() {
		routine.WarmStack()
		b.slots <- struct{}{}
		defer func() { <-b.slots }()
		b.finished <- b.call(ctx, call, c)
	})
}

// awaits lets a call wait for its tool, if it has none and the run was continued with it:
// it is then received from awaited. It is not asked twice of a call.
func (b *batch) awaits(call *thread.Call) bool {
	_, known := b.r.tools.Find(call.Name)
	if known || call.Frontend || call.Own != nil || call.Given != nil || call.Outside != nil ||
		!b.r.inherited[call.ID] {
		return false
	}
	b.r.inherited[call.ID] = false
	waiting, tools := *call, b.r.agent.Toolboxes
	b.r.host.Tasks.Go(func() {
		tools.Await(b.r.ctx, waiting.Name)
		b.awaited <- waiting
	})
	return true
}

// collect saves results as they come. After the run is cancelled or stopped, tools get
// cancelGrace to return; what they finish in that time is still saved.
func (b *batch) collect(running int) error {
	stopped := b.r.ctx.Done()
	var late <-chan time.Time
	for ; running > 0; running-- {
		select {
		case f := <-b.finished:
			more, err := b.took(f)
			if err != nil {
				return err
			}
			running += more
		case call := <-b.awaited:
			if b.r.ctx.Err() == nil {
				b.r.tools.Add(b.r.agent.Toolboxes.Now(), call.Name)
				b.start(call)
				running++
			}
		case <-b.r.arrivals.came:
			running += b.arrived() + 1
		case <-b.r.activities.came:
			if err := (growth{b.r}).addChanges(); err != nil {
				return err
			}
			running++
		case k := <-b.r.keeps.values:
			k.added <- b.saveKept(k)
			running++
		case <-stopped:
			stopped = nil
			t := time.NewTimer(cancelGrace)
			defer t.Stop()
			late = t.C
			running++
		case <-late:
			b.r.busy = true
			return context.Cause(b.r.ctx)
		}
	}
	if b.r.ctx.Err() != nil {
		return context.Cause(b.r.ctx)
	}
	return nil
}

// took saves what came of a call, after what the call has shown. It returns how many more calls
// will finish.
func (b *batch) took(f finished) (more int, err error) {
	b.landed(f.call.ID)
	if err := (growth{b.r}).addChanges(); err != nil {
		return 0, err
	}
	switch {
	case b.r.ctx.Err() != nil && f.err != nil: // cut off, not finished
		return 0, nil
	case b.again(&f):
		return 1, nil
	}
	return 0, b.r.save(f)
}

// landed notes that a call is not in flight any more.
func (b *batch) landed(call string) {
	if cut := b.inFlight[call]; cut != nil {
		cut(nil)
		delete(b.inFlight, call)
	}
}

// given returns the result of a call that must not be started; false for any other.
func (b *batch) given(call thread.Call) (finished, bool) {
	fail := func(text string) (finished, bool) {
		return finished{call: call, notRun: true, result: holdfast.ToolResult{Text: text, Failed: true}}, true
	}
	tool, known := b.r.tools.Find(call.Name)
	switch {
	case call.Given != nil:
		s := call.Given
		return finished{
			call:   call,
			notRun: s.NotRun,
			result: holdfast.ToolResult{Text: s.Text, Parts: s.Parts, Failed: s.Failed},
		}, true
	case call.Own != nil && call.Answer == nil:
		return ownLost(call), true
	case call.Answer != nil && call.Answer.Declined && (call.InDoubt || call.Unknown),
		call.Unknown && staysOut(call.Answer):
		return finished{
			call:   call,
			code:   thread.CodeUnknown,
			result: holdfast.ToolResult{Text: call.TextUnsure(), Failed: true},
		}, true
	case call.Answer != nil && call.Answer.Declined && !call.TellDeclined, staysOut(call.Answer):
		return fail(thread.TextDeclined)
	case call.Answer != nil && call.Repeats && !approves(call.Answer):
		return fail(refusal(call.Answer))
	case call.Cut:
		return fail(thread.TextCut)
	case call.Expired(b.r.host.Config.Now().Time()):
		return finished{call: call, result: holdfast.ToolResult{Text: thread.TextExpired, Failed: true}}, true
	case call.Finished() != nil: // also if the contract is gone
		return finished{}, false
	case call.InDoubt:
		return givenByPerson(call), true
	case !known && !call.Frontend:
		return b.gone(call), true
	case b.unsure(call) && tool.Spec().Effect == holdfast.EffectOnce:
		return inDoubt(call, tool.Spec()), true
	}
	return finished{}, false
}

// unsure reports whether an owner that died had started the call, and the call has kept
// nothing with which it could go on. An outside call is simply handed out once more, unless
// it was carried out before the thread went back, or by a tool whose name the contract has now.
func (b *batch) unsure(call thread.Call) bool {
	return b.r.doubted[call.ID] && call.Outside == nil && (call.Kept == nil || outsideOf(&b.r.tools, call.Name) != nil)
}

// call runs one call through the Tool hooks. It runs in a goroutine of its own.
func (b *batch) call(ctx context.Context, call thread.Call, c holdfast.ToolCall) (f finished) {
	f.call = call
	if err := context.Cause(b.r.ctx); err != nil {
		f.err = err
		return f
	}
	began := clock.Now()
	defer func() {
		if errors.Is(f.err, errFrontend) {
			return
		}
		b.r.host.Config.Observer.ToolCalled(b.r.place(), call.Name, toolResult(ctx, b.r.ctx, &f), began.Ran())
	}()
	defer func() {
		if p := recover(); p != nil {
			f.result, f.err = b.r.chain.ToolPanicked(b.r.ctx, c, p), nil
		}
	}()
	if c.Finished {
		return b.through(ctx, toolOf(b.r, &call), call, c)
	}
	if b.unsure(call) && b.r.tools.Spec(call.Name).Effect == holdfast.EffectQuery {
		if f, known := b.query(ctx, call, c); known {
			return f
		}
		call.Unknown = false
	}
	effects := b.r.hasEffects(call)
	if err := b.r.owner.mayStart(call.ID, effects); err != nil {
		f.err = err
		return f
	}
	if !b.r.starts.begin(call.ID) {
		f.err = ErrStopped
		return f
	}
	b.announce(&c)
	f = b.through(b.r.owner.starting(ctx, call.ID, effects), toolOf(b.r, &call), call, c)
	if errors.Is(f.err, holdfast.ErrOutcomeUnknown) && b.r.ctx.Err() == nil {
		return b.unknown(ctx, call, c, f)
	}
	return f
}

// through calls a tool through the Tool hooks.
func (b *batch) through(ctx context.Context, tool holdfast.Tool, call thread.Call, c holdfast.ToolCall) finished {
	var u updates
	result, err := b.r.chain.CallTool(holdfast.ContextWithCall(ctx, c, u.add), tool, c)
	return finished{
		call:    call,
		result:  result,
		err:     err,
		updates: u.take(),
		notRun:  result.NotRun,
	}
}

// announce logs which call a key belongs to, for people who find the key at a service.
func (b *batch) announce(c *holdfast.ToolCall) {
	b.r.log.Debug("tool call starts",
		"thread", c.Thread, "run", c.Run, "iteration", c.Iteration, "call", c.ID, "tool", c.Name, "key", c.Key)
}

// saveKept makes a change of its call. It runs in the run's goroutine.
func (b *batch) saveKept(k kept) error {
	call := b.r.st.Call(k.call)
	if call == nil {
		return errCallOver
	}
	k.change(call)
	return b.r.w.Add(nil, journal.AtOnce, func(c *store.Commit, _ store.Cursor) { b.r.saveState(c) })
}

// arrived gives open calls the results that have come, the first one to each, and makes
// those calls again; it returns how many more calls will finish. A call that is being handed
// out is made again when that has ended; see again.
func (b *batch) arrived() (running int) {
	for _, a := range b.r.arrivals.take() {
		call := b.r.st.Call(a.Call)
		if call == nil || call.Outside == nil || call.Finished() != nil || call.Given != nil {
			continue
		}
		a.Result.Run = b.r.rec.ID
		call.Finish(a.Result)
		if cut := b.inFlight[call.ID]; cut != nil {
			cut(errResultCame)
			continue
		}
		b.start(*call)
		running++
	}
	return running
}

// again makes a call again whose result has come while it was handed out. It reports false
// for any other.
func (b *batch) again(f *finished) bool {
	call := b.r.st.Call(f.call.ID)
	if call == nil || call.Finished() == nil || f.call.Finished() != nil {
		return false
	}
	b.start(*call)
	return true
}
