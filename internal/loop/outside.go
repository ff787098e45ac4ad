package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/store"
)

// Calls that are finished from outside, while their run lives here. Such a call goes through
// the Tool hooks twice, like one that asks a person: first it is handed out, with the token
// of its URL committed before anybody gets it, and waits; then it is made again with what
// has come, and returns that. A process that dies while it hands a call out is followed by
// one that does so again. outside.go of package owner takes what comes.

// saveHandedOut makes a call of the run wait for its result.
func saveHandedOut(r *run, call thread.Call) error {
	o := outsideOf(&r.tools, call.Name)
	r.st.Call(call.ID).HandedOut(expiry(&r.host.Config, o), o.Abandonable)
	r.host.Config.Observer.OutsideCalled(r.place(), call.Name, observe.OutsideHandedOut)
	return r.w.Step(nil, func(c *store.Commit, _ store.Cursor) {
		// It is not in doubt: it is made again with its result.
		c.Delete = append(c.Delete, store.ValueID{Kind: store.KindIntent, ID: call.ID})
		r.saveState(c)
	})
}

// OutsideEnded tells the observer how an outside call ended; nothing of other calls.
func (h *Host) OutsideEnded(at holdfast.Iteration, call *thread.Call) {
	if call.Outside != nil {
		h.Config.Observer.OutsideCalled(at, call.Name,
			observe.OutsideResult(call.OutsideEnd(h.Config.Now().Time()).End))
	}
}

// outsideTool stands for a contract in the Tool hooks.
type outsideTool struct {
	holdfast.Tool
	call thread.Call
	key  store.ThreadKey
	// keep changes the open call, and waits until that is durable.
	keep func(ctx context.Context, call string, change func(*thread.Call)) error
	// may makes sure that the thread is still this process's: the answer to keep may come late.
	may func() error
	cfg *Config
	// handed is the token that was handed out here, and until when it works, so that a hook
	// that tries again does not need another one; guarded by mu, because a hook may have given
	// an attempt up.
	mu     sync.Mutex
	handed string
	until  time.Time
}

// Call hands the call out.
func (t *outsideTool) Call(ctx context.Context, c holdfast.ToolCall) (holdfast.ToolResult, error) {
	result, err := t.Tool.Call(ctx, c)
	if !isHandedOut(err) {
		return result, err
	}
	if err := t.deliver(ctx, c); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // then the result says only that the time was up
			t.cfg.Log.Warn("a call could not be handed out in its time",
				"tool", c.Name, "thread", c.Thread, "run", c.Run, "call", c.ID, "error", err)
		}
		return holdfast.ToolResult{}, fmt.Errorf("%s could not be handed out: %w", c.Name, err)
	}
	return holdfast.ToolResult{}, err
}

// deliver gives the call to its contract's Deliver.
func (t *outsideTool) deliver(ctx context.Context, c holdfast.ToolCall) error {
	o := t.Spec().Outside
	if o.Deliver == nil {
		return nil
	}
	token, expiresAt, err := t.token(ctx, o)
	if err != nil {
		return err
	}
	if err := t.may(); err != nil {
		return err
	}
	return o.Deliver(ctx, holdfast.OutsideCall{Call: c, URL: secret.New(t.cfg.FinishURL(token)), ExpiresAt: expiresAt})
}

// token returns the token of the call's URL once its hash is durable, and when it expires.
func (t *outsideTool) token(ctx context.Context, o *holdfast.Outside) (string, time.Time, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handed != "" {
		return t.handed, t.until, nil
	}
	newID, until := t.cfg.NewID, expiry(t.cfg, o)
	token := thread.NewToken(t.key, t.call.ID, newID("")+newID(""))
	if err := t.keep(ctx, t.call.ID, func(call *thread.Call) {
		call.Issue(thread.TokenHash(token), until)
	}); err != nil {
		return "", until, err
	}
	if was := t.call.Outside; was != nil && len(was.Tokens) > 0 {
		until = was.ExpiresAt // an earlier process has begun the time
	}
	t.handed, t.until = token, until
	return token, until, nil
}

// expiry returns when a call that is handed out now expires.
func expiry(cfg *Config, o *holdfast.Outside) time.Time {
	if o.ExpiresAfter <= 0 {
		return time.Time{}
	}
	return cfg.Now().Add(o.ExpiresAfter).UTC()
}

// isHandedOut reports whether an error says that a call is finished from outside.
func isHandedOut(err error) bool {
	var ask *holdfast.Interrupt
	return errors.As(err, &ask) && ask.Reason == thread.ReasonOutside
}

// outsideOf returns how the calls of a tool are finished from outside; nil for other tools.
func outsideOf(tools *agents.RunTools, name string) *holdfast.Outside {
	if t, ours := tools.Find(name); ours {
		return t.Spec().Outside
	}
	return nil
}

// errResultCame is the cause that ends the handing out of a call whose result has come.
var errResultCame = errors.New("the call's result has come")

// OutsideResult is a result that has come for a call while its run lives here.
type OutsideResult struct {
	Call   string
	Result thread.OutsideResult
}

// Give gives a call in st its result in the commit c. run is the one that goes on with it. a
// may be nil.
func (a *OutsideResult) Give(c *store.Commit, st *thread.State, run string) {
	if a == nil {
		return
	}
	a.Result.Run = run
	call := st.Call(a.Call)
	call.Finish(a.Result)
	thread.PutOutsideEnd(c, call, a.Result.At)
}

// arrivals are the results that have come and that the run has not taken yet. The run's
// goroutine need not wait for them, nor they for it.
type arrivals struct {
	mu   sync.Mutex
	list []OutsideResult
	// came has an entry when there is something to take.
	came chan struct{}
}

// add adds a result.
func (a *arrivals) add(r OutsideResult) {
	a.mu.Lock()
	a.list = append(a.list, r)
	a.mu.Unlock()
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// take removes and returns all results.
func (a *arrivals) take() []OutsideResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.list
	a.list = nil
	return list
}

// errFrontend means that the hooks let a frontend's call pass.
var errFrontend = errors.New("the call is left to the frontend")

// frontendTool stands for a frontend's tool in the Tool hooks.
type frontendTool struct{ spec holdfast.ToolSpec }

// Spec returns what the client declared.
func (t frontendTool) Spec() holdfast.ToolSpec { return t.spec }

// Call returns errFrontend: the server cannot call it.
func (t frontendTool) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return holdfast.ToolResult{}, errFrontend
}

// resultTool stands in the Tool hooks for the tool of a call whose result is there already.
type resultTool struct {
	spec   holdfast.ToolSpec
	result holdfast.ToolResult
}

// Spec returns the tool's.
func (t resultTool) Spec() holdfast.ToolSpec { return t.spec }

// Call returns the result.
func (t resultTool) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return t.result, nil
}

// textNotPassed is what the model reads of a result that the Tool hooks did not let pass.
const textNotPassed = "No result: what has come for this call cannot be shown."

// passed returns the result that has come for a call, as the Tool hooks let it pass, for a
// call that is closed before a run could take it. Their changes of the shared state are left
// out.
func passed(ctx context.Context, chain *hooks.Chain, tool holdfast.Tool, c holdfast.ToolCall) holdfast.ToolResult {
	left := func(holdfast.StateUpdate) {}
	result, err := chain.CallTool(holdfast.ContextWithCall(ctx, c, left), tool, c)
	if err != nil {
		return holdfast.ToolResult{Text: textNotPassed, Failed: true}
	}
	return result
}
