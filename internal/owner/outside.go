package owner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Results that come from outside for a call. A thread that waits gets it in one commit: with
// the first commit of the run that goes on or, while the thread waits for more, by itself. A
// run that is under way gets it through the thread's inbox. In each case the same commit has
// the value by which a result that is sent again is recognized, so the first one counts on
// whichever server, and nobody is told that it was taken before that is durable.

// OutsideResult is a result that comes from outside.
type OutsideResult struct {
	// Token is that of the call's one-time URL. Without one, Who, Thread and Call say who
	// brings the result, and for which call.
	Token  string
	Who    holdfast.Principal
	Thread string
	Call   string
	// Result is JSON, or an error's text if Failed.
	Result json.RawMessage
	Failed bool
}

// finishing is an OutsideResult on its way.
type finishing struct {
	e *Engine
	OutsideResult
	key    store.ThreadKey
	result thread.OutsideResult
	// verdicts are what came of checks of the result.
	verdicts decide.Verdicts
	// posted is the run in whose thread's inbox the result is; empty if it is in none.
	posted string
	wake   <-chan struct{}
	stop   func()
	until  time.Time
}

// errStillRuns means that the owner of a run has to take the result.
var errStillRuns = errors.New("the thread runs")

// Finish gives a call that waits its result from outside, and goes on with the run if it
// waits for nothing else. The same result again gets the same answer.
func (e *Engine) Finish(ctx context.Context, f OutsideResult) (*threads.FinishedCall, error) {
	x := &finishing{
		e:             e,
		OutsideResult: f,
		key:           store.ThreadKey{Tenant: f.Who.Tenant, Thread: f.Thread},
		verdicts:      decide.Verdicts{},
		stop:          func() {},
	}
	if f.Token != "" {
		// A text that is no token looks for a call too, so that it takes as long.
		x.key, x.Call, _ = thread.ParseToken(f.Token)
	}
	if err := x.decode(); err != nil {
		return nil, err
	}
	defer func() { x.stop() }()
	for tries := 0; tries < maxDecisions; {
		end, err := x.try(ctx)
		var open *openChecks
		switch {
		case errors.As(err, &open):
			if err := x.e.checker.find(ctx, holdfast.Principal{Tenant: x.key.Tenant, User: x.Who.User}, open.checks,
				x.verdicts); err != nil {
				return nil, err
			}
			tries++
		case errors.Is(err, errStillRuns):
			if err := x.hand(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, errDecideAgain), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
			tries++
		case err != nil:
			return nil, err
		default:
			return &threads.FinishedCall{
				Thread:     x.key.Thread,
				ID:         x.Call,
				Tool:       end.Tool,
				Run:        end.Run,
				FinishedAt: end.At,
			}, nil
		}
	}
	return nil, thread.KeptChanging()
}

// Expects returns an error unless a token is that of a call's one-time URL, also of one that
// is over. A caller that asks before the result is received need not receive it from
// strangers.
func Expects(ctx context.Context, e *Engine, token string) error {
	x := &finishing{e: e, OutsideResult: OutsideResult{Token: token}}
	x.key, x.Call, _ = thread.ParseToken(token)
	_, err := x.look(ctx)
	return err
}

// decode reads what has come as the model will. A text is passed on unchanged, anything else
// as JSON.
func (x *finishing) decode() error {
	if len(x.Result) > threads.MaxCallResult {
		return holdfast.Errorf(codes.PayloadTooLarge, "The result has %d bytes, %d are allowed.", len(x.Result),
			threads.MaxCallResult).
			WithHint("Send less, or where the rest can be found. The call waits on.")
	}
	x.result = thread.OutsideResult{
		Failed: x.Failed,
		Hash:   thread.ResultHash(x.Result, x.Failed),
		At:     x.e.cfg.Now().UTC(),
	}
	if json.Unmarshal(x.Result, &x.result.Text) == nil && string(x.Result) != "null" {
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, x.Result); err != nil {
		return holdfast.Errorf(codes.InvalidInput, "The result is not JSON.").
			WithHint(`Send {"result": …} or {"error": "…"}.`).
			Wrap(err)
	}
	x.result.Text = compact.String()
	return nil
}

// found is the call that a result is for.
type found struct {
	*thread.Thread
	call *thread.Call       // nil if it is over
	end  *thread.OutsideEnd // nil if it waits
	tool *holdfast.Outside  // nil if the agent has no such contract any more
}

// look reads the thread and finds the call, if the caller may finish it.
func (x *finishing) look(ctx context.Context) (f found, err error) {
	if f.Thread, err = x.e.read.Head(ctx, x.key); err != nil {
		return f, x.hidden(err)
	}
	if f.end, err = x.e.read.OutsideEnd(ctx, x.key, x.Call); err != nil {
		return f, x.hidden(err)
	}
	f.call = f.State.Call(x.Call)
	if f.call != nil && f.call.Outside == nil {
		f.call = nil // it was not handed out
	}
	if f.end == nil && f.call != nil && f.call.Finished() != nil {
		now := f.call.OutsideEnd(x.e.cfg.Now().Time()) // a run has taken it and not stored it yet
		f.end = &now
	}
	f.tool = x.tool(f.State.Agent, f.call, f.end)
	return f, x.allowed(ctx, f.Thread, f.tool, f.call, f.end)
}

// try stores the result if the thread rests. It returns how the call ended, or errStillRuns.
func (x *finishing) try(ctx context.Context) (*thread.OutsideEnd, error) {
	defer x.e.Lock(x.key)()
	f, err := x.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case f.end != nil:
		return x.repeated(f.Thread, f.end)
	case f.call.Expired(x.e.cfg.Now().Time()):
		return nil, x.late(ctx, f.Thread, f.call)
	}
	if err := x.fits(f.call.Name, f.tool); err != nil {
		return nil, err
	}
	if f.State.Running() {
		if x.posted != f.State.Run() {
			x.posted = "" // the run that it was for has ended
		}
		return nil, errStillRuns
	}
	return x.take(ctx, f.Thread, f.call)
}

// hidden returns the error of reading the thread. A caller with only a token learns nothing of
// the thread from it except that it cannot be read: otherwise they would throw the result
// away.
func (x *finishing) hidden(err error) error {
	switch gone := errors.Is(err, store.ErrNotFound); {
	case gone && x.Token != "":
		return x.notFound()
	case gone:
		return thread.NotFound(x.Thread) // as for a thread of another user
	}
	err = thread.ReadError(x.key, err)
	if x.Token == "" || !thread.Unreadable(err) {
		return err
	}
	return holdfast.Errorf(holdfast.AsError(err).Code,
		"The thread of this call cannot be read; it was left untouched.").
		WithHint("Keep the result, and send it again once an operator has mended that.").
		Wrap(err)
}

// notFound is one error for all that a caller must not be able to tell apart.
func (x *finishing) notFound() error {
	if x.Token != "" {
		return holdfast.Errorf(codes.NotFound, "This URL finishes no call.").
			WithHint("It is not complete, or its thread was deleted or has gone back to before the call.")
	}
	return holdfast.Errorf(codes.NotFound, "Thread %q has no call %q that is finished from outside.", x.Thread, x.Call).
		WithHint("GET /threads/{thread} lists outsideCalls. A call that a person has to allow " +
			"first is not among them yet.")
}

// tool returns the specification of the call's tool; nil if the agent has no such contract.
func (x *finishing) tool(agent string, call *thread.Call, end *thread.OutsideEnd) *holdfast.Outside {
	name := ""
	switch {
	case call != nil:
		name = call.Name
	case end != nil:
		name = end.Tool
	}
	if r := x.e.residents.local(x.key); r != nil {
		return r.run.Spec(name).Outside // those that the run has offered, whatever there is now
	}
	if a, known := x.e.Agents().ByName[agent]; known {
		return a.Toolboxes.Now().Spec(name).Outside
	}
	return nil
}

// allowed returns an error unless the call is there and the caller may finish it.
func (x *finishing) allowed(
	ctx context.Context, t *thread.Thread, tool *holdfast.Outside, call *thread.Call, end *thread.OutsideEnd,
) error {
	if x.Token != "" {
		var tokens []string
		if call != nil {
			tokens = call.Outside.Tokens
		}
		if end != nil {
			tokens = append(tokens, end.Tokens...)
		}
		if !thread.TokenMatches(tokens, x.Token) {
			return x.notFound()
		}
		return nil
	}
	serves := x.Who.Rights.Has(access.RoleService)
	if !serves && t.Head.User != x.Who.User {
		return thread.NotFound(x.Thread)
	}
	if call == nil && end == nil {
		return x.notFound()
	}
	action := access.Finish
	switch {
	case serves:
	case tool != nil && tool.FinishedBy == access.RoleUser:
		action = access.Answer
	case tool != nil && tool.FinishedBy == access.RoleApprover:
		action = access.Approve
	default:
		// A program's own rule cannot change this: a page could make up a tool's result.
		return errNotService(t.State.Agent)
	}
	if x.e.cfg.Authorize == nil {
		return nil
	}
	return x.e.cfg.Authorize(ctx, x.Who, action, t.State.Agent)
}

func errNotService(agent string) *holdfast.Error {
	return holdfast.Errorf(codes.Forbidden, "You may not finish this call.").
		WithHint("Send the result to the call's one-time URL, or with a key that has the role service. On a server "+
			"without keys nobody has that role: there a contract needs a webhook, or says that the user finishes its "+
			"calls (finishedBy: user).").
		With("action", string(access.Finish)).With("agent", agent)
}

// fits returns an error for a result that the contract does not take. It is openChecks until
// that is known.
func (x *finishing) fits(name string, tool *holdfast.Outside) error {
	if tool == nil || x.Failed {
		return nil
	}
	c := decide.Check{Of: fmt.Sprintf("the results of %q", name), Schema: tool.Result, Value: x.Result}
	violations, made := x.verdicts.Of(c)
	switch {
	case !made:
		return &openChecks{[]decide.Check{c}}
	case len(violations) == 0:
		return nil
	}
	return holdfast.Errorf(codes.InvalidInput, "The result is not what the call asks for: %s", violations[0]).
		WithHint("Send it again in the right form; nothing was stored, and the call waits on.").
		With("field", "result").With("violations", violations)
}

// repeated answers for a call that is over: with the first answer if the result is the same.
func (x *finishing) repeated(t *thread.Thread, end *thread.OutsideEnd) (*thread.OutsideEnd, error) {
	if end.End == thread.EndFinished && end.Hash == x.result.Hash {
		return end, nil
	}
	x.refuse(t, end.Tool, end.End)
	details := func(e *holdfast.Error) *holdfast.Error {
		return e.With("threadId", x.key.Thread).With("toolCallId", x.Call)
	}
	switch end.End {
	case thread.EndExpired:
		return nil, details(errCallExpired())
	case thread.EndGivenUp:
		return nil, details(holdfast.Errorf(codes.CallClosed,
			"The call was given up before its result came; nobody waits for it any more.").
			WithHint("The result was not taken. Undo the work if it must not stand."))
	}
	return nil, details(holdfast.Errorf(codes.CallAlreadyAnswered, "The call has another result already.").
		WithHint("The first result counts.").With("finishedAt", end.At))
}

func errCallExpired() *holdfast.Error {
	return holdfast.Errorf(codes.CallExpired, "The result comes too late: the call has expired.").
		WithHint("The result was not taken. Undo the work if it must not stand.")
}

// late answers for a call that has expired, and goes on with its thread, since nobody may
// have touched it since.
func (x *finishing) late(ctx context.Context, t *thread.Thread, call *thread.Call) error {
	x.refuse(t, call.Name, thread.EndExpired)
	if err := x.e.starter.goOn(ctx, t, nil); err != nil {
		x.e.cfg.Log.Info("a thread whose call has expired goes on later", "thread", x.key.Thread, "error", err)
	}
	return errCallExpired().With("threadId", x.key.Thread).
		With("toolCallId", x.Call).
		With("expiredAt", call.Outside.ExpiresAt)
}

// refuse logs and counts a result that is not taken.
func (x *finishing) refuse(t *thread.Thread, tool, end string) {
	x.e.cfg.Observer.OutsideCalled(t.Place(), tool, observe.OutsideRefused)
	x.e.cfg.Log.Warn("a result from outside is not taken",
		"thread", x.key.Thread, "run", t.State.Run(), "call", x.Call, "tool", tool, "call_is", end)
}

// take stores the result of a call whose thread rests.
func (x *finishing) take(ctx context.Context, t *thread.Thread, call *thread.Call) (*thread.OutsideEnd, error) {
	a := &loop.OutsideResult{Call: x.Call, Result: x.result}
	after := t.State.Clone()
	after.Call(x.Call).Finish(x.result)
	if after.GoesOn(x.e.cfg.Now().Time()) {
		err := x.e.starter.goOn(ctx, t, a)
		var busy *holdfast.Error
		if err == nil || !errors.As(err, &busy) || busy.Code != codes.TooManyRuns && busy.Code != codes.LimitExceeded {
			return x.stored(t, call, a.Result.Run, err)
		}
		// There is no place for the run now; the result is not lost for that.
	}
	c := &store.Commit{
		Key:       t.Key,
		ID:        x.e.cfg.NewID("c"),
		Expect:    t.Head.Position(),
		User:      t.Head.User,
		Fence:     t.Head.Fence,
		Process:   t.Head.Process,
		UpdatedAt: x.e.cfg.Now().Time(),
	}
	st := t.State.Clone()
	a.Give(c, st, "")
	st.Bytes += thread.BytesOf(c)
	thread.Save(c, st)
	if _, err := x.e.host.CommitAlone(ctx, t.Place(), c); err != nil {
		return nil, thread.ReadUnlessMoved(t.Key, err)
	}
	x.e.cfg.Limits.Wrote(t.Place().Principal, thread.BytesOf(c))
	return x.stored(t, call, "", nil)
}

// stored returns how the call ends, and logs that, unless there was an error.
func (x *finishing) stored(t *thread.Thread, call *thread.Call, run string, err error) (*thread.OutsideEnd, error) {
	if err != nil {
		return nil, err
	}
	x.e.cfg.Log.Info("a call was finished from outside",
		"thread", t.Key.Thread, "run", t.State.Run(), "call", x.Call, "tool", call.Name, "continues", run)
	return &thread.OutsideEnd{
		Tool: call.Name,
		End:  thread.EndFinished,
		Hash: x.result.Hash,
		Run:  run,
		At:   x.result.At,
	}, nil
}

// GoOn goes on with a thread whose outside calls have all ended, if nobody has done so: the
// last one has expired, or there was no place for the run. A run that has waited for its agent's
// revision for long enough ends.
func (e *Engine) GoOn(ctx context.Context, key store.ThreadKey) error {
	waits, err := e.goOn(ctx, key)
	if err == nil && waits {
		err = e.takeovers.ensureOwnerOf(ctx, key)
	}
	return err
}

// goOn is GoOn for a thread that does not run. It reports whether the thread has a run that waits.
func (e *Engine) goOn(ctx context.Context, key store.ThreadKey) (waits bool, err error) {
	defer e.Lock(key)()
	t, err := e.read.Head(ctx, key)
	if err != nil || t.State.Waiting != nil {
		return err == nil, err
	}
	return false, e.starter.goOn(ctx, t, nil)
}

// hand has the owner of the thread's run take the result, and waits until there may be news
// of it.
func (x *finishing) hand(ctx context.Context) error {
	if x.wake == nil {
		x.wake, x.stop = x.e.cfg.Store.Watch(x.key)
		x.until = time.Now().Add(x.e.cfg.StoreTimeout)
	}
	if x.posted == "" {
		return x.post(ctx)
	}
	look := time.NewTimer(x.e.cfg.Lease)
	defer look.Stop()
	select {
	case <-x.wake:
		if x.e.over() {
			return errShuttingDown()
		}
	case <-look.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.e.closed:
		return errShuttingDown()
	}
	if time.Now().After(x.until) {
		return holdfast.Errorf(codes.RunInProgress, "The run of this call did not take the result in time.").
			WithHint("Send the result again: the same result is taken once.").
			With("threadId", x.key.Thread).With("runId", x.posted)
	}
	return nil
}

// post leaves the result in the thread's inbox, and makes sure that somebody reads it.
func (x *finishing) post(ctx context.Context) error {
	t, err := x.e.read.Head(ctx, x.key)
	if err != nil {
		return x.hidden(err)
	}
	x.posted = t.State.Run()
	item := store.InboxItem{
		ID:   fmt.Sprintf("%s/%s/%s", loop.ItemResult, x.Call, x.result.Hash),
		Data: thread.MustJSON(loop.Item{Type: loop.ItemResult, Run: x.posted, Call: x.Call, Result: &x.result}),
	}
	if err := x.e.cfg.Store.Post(ctx, x.key, item); err != nil {
		return x.hidden(err)
	}
	if err := x.e.takeovers.ensureOwnerOf(ctx, x.key); err != nil {
		return thread.ReadError(x.key, err)
	}
	return nil
}
