package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// The results of calls that nothing was run for. Models and people read them.
const (
	textNotAnswered = "No result: the call was not answered."
	textDeclined    = "No result: the person declined to answer."
	textAbandoned   = "No result: the call was cut off before it finished, and was given up."
	textCancelled   = "No result: the run was cancelled before the call finished."
	textInDoubt     = "Outcome unknown: the server died while this call was running. It may have taken effect, and it was not started again. Check before you repeat it."
	textPanicked    = "%s failed because of a mistake in the tool itself. It may have taken effect in part."
	textCut         = "Not started: the answer was cut off in the middle of this call's arguments by the model's length limit. Make a shorter call."
)

// cancelGrace is how long tools get to return once their run is cancelled.
const cancelGrace = time.Second

// finished is what one call came to.
type finished struct {
	call    openCall
	result  holdfast.ToolResult
	err     error
	updates []holdfast.StateUpdate
	// notRun: nothing was started for this result.
	notRun bool
	// reused is the recorded result that this one is; empty if it is none.
	reused string
}

// batch runs the open calls in parallel and saves each result the moment it
// exists. It returns an end when the run ends here: a person is asked, or the
// frontend has calls to answer.
func (r *run) batch() (*runEnd, error) {
	if len(r.st.Calls) == 0 {
		return nil, nil
	}
	if err := r.w.ready(r.ctx); err != nil {
		return nil, err
	}
	if err := r.runCalls(); err != nil {
		return nil, err
	}
	if open := r.st.interrupts(); len(open) > 0 {
		return &runEnd{&agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: open}, phaseInterrupted, outcomeInterrupt}, nil
	}
	if ids := r.st.pendingFrontend(); len(ids) > 0 {
		r.e.cfg.Observer.IterationDone(r.place(), r.results)
		return &runEnd{&agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: ids}, phaseIdle, outcomeSuccess}, nil
	}
	return nil, nil
}

func (r *run) runCalls() error {
	results := make(chan finished, len(r.st.Calls))
	slots := make(chan struct{}, r.e.cfg.MaxParallelTools)
	running := 0
	for _, call := range r.st.Calls {
		// A frontend's call is its own, unless hooks have something to say about it.
		if call.Frontend && call.Settled == nil && call.Answer == nil || call.waits() {
			continue
		}
		if f, recorded := r.reused(call); recorded && call.Settled == nil && call.Answer == nil {
			r.e.cfg.Observer.ToolCalled(r.place(), call.Name, ToolReused, 0)
			results <- f
		} else if f, settled := r.settled(call); settled {
			r.e.cfg.Observer.ToolCalled(r.place(), call.Name, ToolRefused, 0)
			results <- f
		} else {
			c := r.toolCall(&call)
			r.e.wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				results <- r.runCall(call, c)
			})
		}
		running++
	}
	return r.collect(results, running)
}

// collect saves results as they come. Once the run is cancelled or stopped,
// tools get a moment to return; what they finished is saved all the same.
func (r *run) collect(results <-chan finished, running int) error {
	stopped := r.ctx.Done()
	var late <-chan time.Time
	for ; running > 0; running-- {
		select {
		case f := <-results:
			if r.ctx.Err() != nil && f.err != nil {
				continue // cut off, not finished
			}
			if err := r.save(f); err != nil {
				return err
			}
		case <-stopped:
			stopped = nil
			t := time.NewTimer(cancelGrace)
			defer t.Stop()
			late = t.C
			running++
		case <-late:
			return context.Cause(r.ctx)
		}
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// settled returns the result of a call that must not be started.
func (r *run) settled(call openCall) (finished, bool) {
	fail := func(text string) (finished, bool) {
		return finished{call: call, notRun: true, result: holdfast.ToolResult{Text: text, Failed: true}}, true
	}
	tool, known := r.tools[call.Name]
	switch {
	case call.Settled != nil:
		s := call.Settled
		return finished{call: call, notRun: s.NotRun, result: holdfast.ToolResult{Text: s.Text, Parts: s.Parts, Failed: s.Failed}}, true
	case call.Answer != nil && call.Answer.Declined && call.InDoubt:
		return finished{call: call, result: holdfast.ToolResult{Text: textInDoubt, Failed: true}}, true
	case call.Answer != nil && call.Answer.Declined:
		return fail(textDeclined)
	case call.Cut:
		return fail(textCut)
	case !known && !call.Frontend:
		return fail(fmt.Sprintf("There is no tool %q.", call.Name))
	case call.InDoubt:
		return settledByPerson(call), true
	case r.doubted[call.ID] && tool.Spec().Effect == holdfast.EffectOnce:
		return inDoubt(call, tool.Spec()), true
	}
	return finished{}, false
}

// callKey is the idempotency key: it stays the same when the call is run again.
func callKey(thread string, call *openCall) string {
	if call.Thread != "" {
		thread = call.Thread
	}
	return thread + "/" + call.Run + "/" + call.ID
}

func (r *run) toolCall(call *openCall) holdfast.ToolCall {
	c := holdfast.ToolCall{
		ID: call.ID, Name: call.Name, Key: callKey(r.key.Thread, call), Principal: r.principal(),
		Thread: r.key.Thread, Run: r.rec.ID, Iteration: r.st.Iteration, State: r.shared, Answer: call.Answer, Frontend: call.Frontend,
	}
	c.Arguments = json.RawMessage(r.hist.arguments(call.ID))
	return c
}

// runCall runs one call through the middleware.
func (r *run) runCall(call openCall, c holdfast.ToolCall) (f finished) {
	f.call = call
	if err := context.Cause(r.ctx); err != nil {
		f.err = err
		return f
	}
	began := r.e.cfg.Now()
	defer func() {
		if errors.Is(f.err, errFrontend) {
			return
		}
		r.e.cfg.Observer.ToolCalled(r.place(), call.Name, toolResult(r.ctx, &f), r.e.cfg.Now().Sub(began))
	}()
	defer func() {
		if p := recover(); p != nil {
			f.result, f.err = r.chain.toolPanicked(r.ctx, c, p), nil
		}
	}()
	if r.doubted[call.ID] && r.tools[call.Name].Spec().Effect == holdfast.EffectQuery {
		if f, known := r.query(call, c); known {
			return f
		}
	}
	if err := r.confirmOwner(call); err != nil {
		f.err = err
		return f
	}
	var u updates
	f.result, f.err = r.chain.tool(holdfast.ContextWithCall(r.inner, c, u.add), r.toolOf(&call), c)
	f.updates, f.notRun = u.take(), f.result.NotRun
	return f
}

// errFrontend: the hooks have let a frontend's call pass.
var errFrontend = errors.New("the call is left to the frontend")

// toolOf returns the tool of a call; a frontend's has no more than a specification.
func (r *run) toolOf(call *openCall) holdfast.Tool {
	if tool, ours := r.tools[call.Name]; ours {
		return tool
	}
	for _, t := range r.rec.Tools {
		if t.Name == call.Name {
			return frontendTool{holdfast.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Effect: holdfast.EffectOnce, Metadata: t.Metadata}}
		}
	}
	return frontendTool{holdfast.ToolSpec{Name: call.Name, Effect: holdfast.EffectOnce}}
}

type frontendTool struct{ spec holdfast.ToolSpec }

func (t frontendTool) Spec() holdfast.ToolSpec { return t.spec }

func (t frontendTool) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return holdfast.ToolResult{}, errFrontend
}

// updates collects the state updates of a call. A tool that was given up at
// its timeout may still add some; they are not taken.
type updates struct {
	mu   sync.Mutex
	list []holdfast.StateUpdate
}

func (u *updates) add(f holdfast.StateUpdate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, f)
}

func (u *updates) take() []holdfast.StateUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.list)
}

// save commits what a call came to: its result as a message and a pending
// write, with the record that shows it and the state it changed; or the question
// it asks.
func (r *run) save(f finished) error {
	var ask *holdfast.Interrupt
	switch {
	case errors.As(f.err, &ask):
		return r.saveQuestion(f.call, ask)
	case errors.Is(f.err, errFrontend): // its answer was heard
		call := r.st.call(f.call.ID)
		call.Interrupt, call.Answer = nil, nil
		return nil
	}
	var end *holdfast.EndRun
	switch {
	case errors.As(f.err, &end):
		r.st.Ending = endingOf(end.Err)
		f.result = holdfast.ToolResult{Text: end.Err.Message, Failed: true} // the hint is for people
	case f.err != nil:
		f.result = holdfast.ToolResult{Text: f.err.Error(), Failed: true}
	}
	message := r.e.cfg.NewID("msg")
	events, put, err := r.applyUpdates(&f, message)
	if err != nil {
		f.result = holdfast.ToolResult{Text: "The shared state could not be changed: " + err.Error(), Failed: true}
	}
	m := agui.FromDomain(holdfast.Message{ID: message, Role: holdfast.RoleTool, CallID: f.call.ID, Text: f.result.Text, Parts: f.result.Parts})
	shown := agui.ToolCallResult{MessageID: m.ID, ToolCallID: f.call.ID, Content: m.Content, Role: string(holdfast.RoleTool)}
	shown.Timestamp = r.now()
	if f.result.Failed {
		// The protocol has no word for it that a result is an error's text.
		m.Metadata = resultMark(f.notRun)
		shown.Metadata = m.Metadata
	}
	r.st.closeCall(f.call.ID)
	r.results++
	return r.append([]agui.Message{m}, append([]agui.Event{shown}, events...), r.when(f.call), func(c *holdfast.Commit) {
		c.Put = append(c.Put, put...)
		if f.reused != "" {
			c.Delete = append(c.Delete, holdfast.ValueID{Kind: holdfast.KindReuse, ID: f.reused})
		}
		if r.e.cfg.NoPendingWrites && r.repeatable(f.call) {
			return
		}
		r.noteWork(c)
		c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindPending, ID: f.call.ID, Data: mustJSON(pendingWrite{
			Format: Format, CallID: f.call.ID, Tool: f.call.Name, Message: m.ID, Failed: f.result.Failed,
			Iteration: r.st.Iteration, CompletedAt: r.e.cfg.Now(),
		})})
	})
}

// when says how soon a call's result is committed: at once, unless its tool is
// pure, or pending writes are off and it can be run again.
func (r *run) when(call openCall) urgency {
	switch {
	case r.e.cfg.NoPendingWrites && r.repeatable(call):
		return withNext
	case r.hasEffects(call):
		return atOnce
	default:
		return soon
	}
}

// repeatable reports whether a call that was cut off is run again.
func (r *run) repeatable(call openCall) bool {
	tool, ours := r.tools[call.Name]
	return !ours || !neverTwice(tool.Spec().Effect)
}

// stateOf names the shared state after a call by the message of its result, so that
// what a recorded result did to it can be found.
func stateOf(message string) string { return "s/" + message }

// applyUpdates computes the shared state after a successful call.
func (r *run) applyUpdates(f *finished, message string) ([]agui.Event, []holdfast.Value, error) {
	if f.result.Failed || len(f.updates) == 0 {
		return nil, nil, nil
	}
	state := json.RawMessage(r.shared)
	if state == nil {
		state = json.RawMessage("null")
	}
	for _, u := range f.updates {
		next, err := u(state)
		if err != nil {
			return nil, nil, err
		}
		if !json.Valid(next) {
			return nil, nil, errors.New("the new state is not JSON")
		}
		state = next
	}
	r.shared = state
	r.st.Shared = stateOf(message)
	blob := holdfast.Value{Kind: holdfast.KindBlob, ID: r.st.Shared, Data: state}
	return []agui.Event{agui.StateRef{ID: r.st.Shared}}, []holdfast.Value{blob}, nil
}

// saveQuestion makes the call wait for a person.
func (r *run) saveQuestion(call openCall, ask *holdfast.Interrupt) error {
	c := r.st.call(call.ID)
	c.Interrupt, c.Answer, c.InDoubt = r.interrupt(ask, call.ID), nil, call.InDoubt
	return r.w.step(nil, func(c *holdfast.Commit, _ holdfast.Cursor) {
		if !call.InDoubt {
			// The question is what the call came to; it starts anew with the answer.
			c.Delete = append(c.Delete, holdfast.ValueID{Kind: holdfast.KindIntent, ID: call.ID})
		}
		c.State = r.st.encode()
	})
}

// interrupt is a question as the stream shows it; call is empty for a hook's.
func (r *run) interrupt(ask *holdfast.Interrupt, call string) *agui.Interrupt {
	i := &agui.Interrupt{
		ID: r.e.cfg.NewID("int"), Reason: ask.Reason, Message: ask.Message, ToolCallID: call,
		ResponseSchema: ask.ResponseSchema, Metadata: ask.Metadata,
	}
	if i.Reason == "" {
		i.Reason = "input_required"
	}
	if !ask.ExpiresAt.IsZero() {
		i.ExpiresAt = ask.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return i
}

// closeCalls answers every open call without running it.
func (r *run) closeCalls(text string) error {
	for len(r.st.Calls) > 0 {
		f := finished{call: r.st.Calls[0], result: holdfast.ToolResult{Text: text, Failed: true}}
		if err := r.save(f); err != nil {
			return err
		}
	}
	return nil
}
