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
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// cancelGrace is how long tools get to return once their run is cancelled.
const cancelGrace = time.Second

// finished is what one call came to.
type finished struct {
	call    thread.Call
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
func (r *run) batch() (*conclusion, error) {
	if len(r.st.Calls) == 0 {
		return nil, nil
	}
	if err := r.w.Ready(r.ctx); err != nil {
		return nil, err
	}
	if err := r.runCalls(); err != nil {
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

func (r *run) runCalls() error {
	results := make(chan finished, len(r.st.Calls))
	slots := make(chan struct{}, r.host.cfg.MaxParallelTools)
	running := 0
	for _, call := range r.st.Calls {
		// A frontend's call is its own, unless hooks have something to say about it.
		if call.Frontend && call.Given == nil && call.Answer == nil || call.Waits() {
			continue
		}
		if f, recorded := r.reused(call); recorded && call.Given == nil && call.Answer == nil {
			r.host.cfg.Observer.ToolCalled(r.place(), call.Name, ToolReused, 0)
			results <- f
		} else if f, settled := r.settled(call); settled {
			r.host.cfg.Observer.ToolCalled(r.place(), call.Name, ToolRefused, 0)
			results <- f
		} else {
			c := r.toolCall(&call)
			r.host.wg.Go(func() {
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
func (r *run) settled(call thread.Call) (finished, bool) {
	fail := func(text string) (finished, bool) {
		return finished{call: call, notRun: true, result: holdfast.ToolResult{Text: text, Failed: true}}, true
	}
	tool, known := r.tools[call.Name]
	switch {
	case call.Given != nil:
		s := call.Given
		return finished{call: call, notRun: s.NotRun, result: holdfast.ToolResult{Text: s.Text, Parts: s.Parts, Failed: s.Failed}}, true
	case call.Answer != nil && call.Answer.Declined && call.InDoubt:
		return finished{call: call, result: holdfast.ToolResult{Text: thread.TextInDoubt, Failed: true}}, true
	case call.Answer != nil && call.Answer.Declined:
		return fail(thread.TextDeclined)
	case call.Cut:
		return fail(thread.TextCut)
	case !known && !call.Frontend:
		return fail(fmt.Sprintf("There is no tool %q.", call.Name))
	case call.InDoubt:
		return settledByPerson(call), true
	case r.doubted[call.ID] && tool.Spec().Effect == holdfast.EffectOnce:
		return inDoubt(call, tool.Spec()), true
	}
	return finished{}, false
}

func (r *run) toolCall(call *thread.Call) holdfast.ToolCall {
	c := holdfast.ToolCall{
		ID: call.ID, Name: call.Name, Key: thread.CallKey(r.key.Thread, call), Principal: r.principal(),
		Thread: r.key.Thread, Run: r.rec.ID, Iteration: r.st.Iteration, State: r.shared, Answer: call.Answer, Frontend: call.Frontend,
	}
	c.Arguments = json.RawMessage(r.hist.Arguments(call.ID))
	return c
}

// runCall runs one call through the middleware.
func (r *run) runCall(call thread.Call, c holdfast.ToolCall) (f finished) {
	f.call = call
	if err := context.Cause(r.ctx); err != nil {
		f.err = err
		return f
	}
	began := r.host.cfg.Now()
	defer func() {
		if errors.Is(f.err, errFrontend) {
			return
		}
		r.host.cfg.Observer.ToolCalled(r.place(), call.Name, toolResult(r.ctx, &f), r.host.cfg.Now().Sub(began))
	}()
	defer func() {
		if p := recover(); p != nil {
			f.result, f.err = r.chain.ToolPanicked(r.ctx, c, p), nil
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
	f.result, f.err = r.chain.CallTool(holdfast.ContextWithCall(r.inner, c, u.add), r.toolOf(&call), c)
	f.updates, f.notRun = u.take(), f.result.NotRun
	return f
}

// errFrontend: the hooks have let a frontend's call pass.
var errFrontend = errors.New("the call is left to the frontend")

// toolOf returns the tool of a call; a frontend's has no more than a specification.
func (r *run) toolOf(call *thread.Call) holdfast.Tool {
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
