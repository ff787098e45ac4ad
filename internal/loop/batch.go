package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
)

// The tool calls of one answer. Once the answer and the intents of its calls are durable,
// all calls start in parallel; each runs in a goroutine through the Tool hooks, and the
// run's goroutine saves each result the moment it exists (results.go). Some calls get
// their result without being started: decided by a hook, declined by a person, cut off
// by the model, in doubt (doubt.go), or recorded before a rewind (reuse.go).

// cancelGrace is how long tools get to return after their run is cancelled.
const cancelGrace = time.Second

// finished is what came of one call.
type finished struct {
	call    thread.Call
	result  holdfast.ToolResult
	err     error
	updates []holdfast.StateUpdate
	// notRun means that nothing was started for this result.
	notRun bool
	// said means that a person has said what came of the call.
	said bool
	// reused is the id of the recorded result that this one is; empty for any other.
	reused string
}

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
	b := &batch{
		run: r, finished: make(chan finished, len(r.st.Calls)), slots: make(chan struct{}, r.host.cfg.MaxParallelTools),
	}
	if err := b.collect(b.start()); err != nil {
		return nil, err
	}
	if open := r.st.Interrupts(); len(open) > 0 {
		return asks(open), nil
	}
	if ids := r.st.PendingFrontend(); len(ids) > 0 {
		r.host.cfg.Observer.IterationDone(r.place(), r.results)
		return succeeded(ids...), nil
	}
	return nil, nil
}

// batch is the open calls of an answer while they run.
type batch struct {
	*run
	// finished receives what came of each call; slots bounds how many run at a time.
	finished chan finished
	slots    chan struct{}
}

// start starts the calls that can be started, and returns how many will finish.
func (b *batch) start() (running int) {
	for _, call := range b.st.Calls {
		// The frontend makes its calls itself, unless a hook has decided about one.
		if call.Frontend && call.Given == nil && call.Answer == nil || call.Waits() {
			continue
		}
		if f, recorded := b.reused(call); recorded && call.Given == nil && call.Answer == nil {
			b.host.cfg.Observer.ToolCalled(b.place(), call.Name, observe.ToolReused, 0)
			b.finished <- f
		} else if f, given := b.given(call); given {
			b.host.cfg.Observer.ToolCalled(b.place(), call.Name, observe.ToolRefused, 0)
			b.finished <- f
		} else if b.st.OnlyRecorded && !call.Frontend {
			b.host.cfg.Observer.ToolCalled(b.place(), call.Name, observe.ToolRefused, 0)
			b.finished <- b.notRecorded(call)
		} else {
			c := b.toolCall(&call)
			b.host.wg.Go(func() {
				b.slots <- struct{}{}
				defer func() { <-b.slots }()
				b.finished <- b.call(call, c)
			})
		}
		running++
	}
	return running
}

// collect saves results as they come. After the run is cancelled or stopped, tools get
// cancelGrace to return; what they finish in that time is still saved.
func (b *batch) collect(running int) error {
	stopped := b.ctx.Done()
	var late <-chan time.Time
	for ; running > 0; running-- {
		select {
		case f := <-b.finished:
			if b.ctx.Err() != nil && f.err != nil {
				continue // cut off, not finished
			}
			if err := b.save(f); err != nil {
				return err
			}
		case k := <-b.keeps.values:
			k.added <- b.saveKept(k)
			running++
		case <-stopped:
			stopped = nil
			t := time.NewTimer(cancelGrace)
			defer t.Stop()
			late = t.C
			running++
		case <-late:
			return context.Cause(b.ctx)
		}
	}
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return nil
}

// given returns the result of a call that must not be started; false for any other.
func (b *batch) given(call thread.Call) (finished, bool) {
	fail := func(text string) (finished, bool) {
		return finished{call: call, notRun: true, result: holdfast.ToolResult{Text: text, Failed: true}}, true
	}
	tool, known := b.tools[call.Name]
	switch {
	case call.Given != nil:
		s := call.Given
		return finished{call: call, notRun: s.NotRun, result: holdfast.ToolResult{Text: s.Text, Parts: s.Parts, Failed: s.Failed}}, true
	case call.Answer != nil && call.Answer.Declined && call.InDoubt:
		return finished{call: call, result: holdfast.ToolResult{Text: call.TextUnsure(), Failed: true}}, true
	case call.Answer != nil && call.Answer.Declined && !call.TellDeclined:
		return fail(thread.TextDeclined)
	case call.Answer != nil && call.Repeats && !approves(call.Answer):
		return fail(refusal(call.Answer))
	case call.Cut:
		return fail(thread.TextCut)
	case !known && !call.Frontend:
		return fail(fmt.Sprintf("There is no tool %q.", call.Name))
	case call.InDoubt:
		return givenByPerson(call), true
	case b.unsure(call) && tool.Spec().Effect == holdfast.EffectOnce:
		return inDoubt(call, tool.Spec()), true
	}
	return finished{}, false
}

// unsure reports whether an owner that died had started the call, and the call has kept
// nothing with which it could go on.
func (b *batch) unsure(call thread.Call) bool { return b.doubted[call.ID] && call.Kept == nil }

// toolCall returns the call as the tool gets it.
func (b *batch) toolCall(call *thread.Call) holdfast.ToolCall {
	c := holdfast.ToolCall{
		ID: call.ID, Name: call.Name, Key: b.keyOf(call), Principal: b.principal(),
		Thread: b.key.Thread, Run: b.rec.ID, Iteration: b.st.Iteration, State: b.shared, Answer: handed(call.Answer, call.Interrupt), Frontend: call.Frontend,
		Kept: call.Kept,
	}
	if call.Repeats { // the answer is ours, not the hooks' or the tool's
		c.Answer = nil
	}
	c.Arguments = json.RawMessage(b.hist.Arguments(call.ID))
	return c
}

// call runs one call through the Tool hooks. It runs in a goroutine of its own.
func (b *batch) call(call thread.Call, c holdfast.ToolCall) (f finished) {
	f.call = call
	if err := context.Cause(b.ctx); err != nil {
		f.err = err
		return f
	}
	began := b.host.cfg.Now()
	defer func() {
		if errors.Is(f.err, errFrontend) {
			return
		}
		b.host.cfg.Observer.ToolCalled(b.place(), call.Name, toolResult(b.ctx, &f), b.host.cfg.Now().Sub(began))
	}()
	defer func() {
		if p := recover(); p != nil {
			f.result, f.err = b.chain.ToolPanicked(b.ctx, c, p), nil
		}
	}()
	if b.unsure(call) && b.tools[call.Name].Spec().Effect == holdfast.EffectQuery {
		if f, known := b.query(call, c); known {
			return f
		}
	}
	if err := b.confirmOwner(call); err != nil {
		f.err = err
		return f
	}
	b.announce(&c)
	var u updates
	f.result, f.err = b.chain.CallTool(holdfast.ContextWithCall(b.inner, c, u.add), b.toolOf(&call), c)
	f.updates, f.notRun = u.take(), f.result.NotRun
	if errors.Is(f.err, holdfast.ErrOutcomeUnknown) && b.ctx.Err() == nil {
		return b.unknown(call, c, f)
	}
	return f
}

// announce logs which call a key belongs to, for whoever finds the key at a service.
func (b *batch) announce(c *holdfast.ToolCall) {
	b.host.cfg.Log.Debug("tool call starts", "thread", c.Thread, "run", c.Run, "iteration", c.Iteration, "call", c.ID, "tool", c.Name, "key", c.Key)
}

// errFrontend means that the hooks let a frontend's call pass.
var errFrontend = errors.New("the call is left to the frontend")

// toolOf returns the tool of a call. A frontend's tool is only a specification.
func (b *batch) toolOf(call *thread.Call) holdfast.Tool {
	if tool, ours := b.tools[call.Name]; ours {
		return tool
	}
	for _, t := range b.rec.Tools {
		if t.Name == call.Name {
			return frontendTool{holdfast.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Effect: holdfast.EffectOnce, Metadata: t.Metadata}}
		}
	}
	return frontendTool{holdfast.ToolSpec{Name: call.Name, Effect: holdfast.EffectOnce}}
}

// frontendTool stands for a frontend's tool in the Tool hooks.
type frontendTool struct{ spec holdfast.ToolSpec }

// Spec returns what the client declared.
func (t frontendTool) Spec() holdfast.ToolSpec { return t.spec }

// Call returns errFrontend: the server cannot call it.
func (t frontendTool) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return holdfast.ToolResult{}, errFrontend
}
