package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// sweep looks for threads whose owner is gone: once at the start, then once a
// lease.
func (e *Engine) sweep() {
	tick := time.NewTicker(e.cfg.Lease)
	defer tick.Stop()
	for {
		e.sweepOnce()
		select {
		case <-e.ctx.Done():
			return
		case <-e.draining:
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) sweepOnce() {
	owned, err := e.cfg.Store.Owned(e.ctx)
	if err != nil {
		if e.ctx.Err() == nil {
			e.cfg.Log.Warn("the sweep could not read the store", "error", err)
		}
		return
	}
	for _, o := range owned {
		if e.stopping() {
			return
		}
		if e.local(o.Key) != nil {
			continue
		}
		if err := e.recover(e.ctx, o.Key); err != nil && e.ctx.Err() == nil {
			e.cfg.Log.Warn("a run could not be recovered yet", "thread", o.Key.Thread, "error", err)
		}
	}
}

// recover takes the thread over if its owner is gone.
func (e *Engine) recover(ctx context.Context, key holdfast.ThreadKey) error {
	defer e.Lock(key)()
	t, err := e.Read.Head(ctx, key)
	if err != nil {
		return err
	}
	_, err = e.settle(ctx, t)
	if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrFenced) {
		return nil // somebody else was faster
	}
	return err
}

// settle makes sure that a thread that claims to run has an owner that lives.
// It reports true when the head has moved. The caller holds the thread's lock.
func (e *Engine) settle(ctx context.Context, t *thread.Thread) (bool, error) {
	if t.Head == nil || t.State.Phase != thread.Running || e.local(t.Key) != nil {
		return false, nil
	}
	if t.Head.Process != e.process {
		alive, err := e.cfg.Store.Alive(ctx, t.Head.Process)
		if err != nil {
			return false, thread.StoreError(err)
		}
		if alive {
			return false, nil
		}
	}
	err := e.claimRun(ctx, t)
	if err != nil && ctx.Err() == nil {
		e.cfg.Observer.Claimed(t.Place(), claimResult(err), "")
	}
	return true, err
}

// claimRun goes on with a run whose owner is gone, or ends it.
func (e *Engine) claimRun(ctx context.Context, t *thread.Thread) error {
	_, err := e.Agent(t.State.Agent)
	switch {
	case err != nil:
		return e.cut(ctx, t, holdfast.AsError(err))
	case t.State.Claims >= MaxClaims:
		return e.cut(ctx, t, errGaveUp(t.State.Claims))
	case !e.cfg.Recover:
		return e.cut(ctx, t, thread.CutOff(t.State.Iteration))
	}
	return e.takeOver(ctx, t)
}

// claim prepares the commit that makes this process the owner, with the fence
// that was seen as its condition.
func (e *Engine) claim(t *thread.Thread, process string) *holdfast.Commit {
	return &holdfast.Commit{
		Key: t.Key, ID: e.cfg.NewID("c"), Expect: t.Head.Position(), User: t.Head.User,
		Fence:   holdfast.Fence{Epoch: t.Head.Fence.Epoch + 1, Nonce: e.cfg.NewID("")},
		Process: process, UpdatedAt: e.cfg.Now(),
	}
}

// cut ends a run that nobody goes on with.
func (e *Engine) cut(ctx context.Context, t *thread.Thread, reason *holdfast.Error) error {
	st := t.State.Clone()
	ev := agui.RunError{Base: agui.Base{Timestamp: e.cfg.Now().UnixMilli()}, Message: thread.PublicText(reason), Code: reason.Code}
	c := e.claim(t, "")
	c.Records = [][]byte{ev.AppendJSON(nil)}
	st.Phase, st.Outcome, st.Code, st.Text = thread.Stopped, thread.OutcomeError, reason.Code, thread.PublicText(reason)
	st.Boundary, st.Claims = holdfast.Cursor{Number: t.Head.Next, Tag: c.Fence.Tag()}, 0
	thread.AddCheckpoint(c, st, thread.SourceLoop, st.Iteration, e.cfg.Now(), e.cfg.KeepCheckpoints)
	thread.PutRunEnd(c, st.Run, thread.RunEnd{Format: thread.Format, Outcome: thread.OutcomeError, Code: reason.Code, EndedAt: e.cfg.Now(), Last: t.Head.Next})
	c.State = st.Encode()
	if err := e.Commit(ctx, t.Place(), c); err != nil {
		return err
	}
	e.cfg.Ended(t.Key)
	e.cfg.Observer.Claimed(t.Place(), ClaimCut, reason.Code)
	e.cfg.Log.Warn("run cut off", "thread", t.Key.Thread, "run", st.Run, "iteration", st.Iteration, "code", reason.Code)
	return nil
}

// takeOver goes on with a run from its head: it closes what its owner left
// open, says so, resynchronises, and starts the run's goroutine here.
func (e *Engine) takeOver(ctx context.Context, t *thread.Thread) error {
	r, err := e.rebuild(ctx, t.Key, t.State.Clone())
	if err != nil {
		return err
	}
	if err := thread.CheckStale(r.st, r.hist); err != nil {
		return e.cut(ctx, t, holdfast.AsError(err))
	}
	states, err := e.restore(ctx, t.Key, r.st, r.agent.Name)
	var refused *holdfast.Error
	if errors.As(err, &refused) && refused.Code != holdfast.CodeStoreUnavailable {
		return e.cut(ctx, t, refused)
	}
	if err != nil {
		return err
	}
	r.live = holdfast.NewLiveStates(states.states)
	r.st.Follow(r.live)
	// Ids that the abandoned answer has shown are taken, or the next answer would
	// continue its calls.
	seq, err := e.Read.Replay(ctx, t, func(ev agui.Event) {
		if call, ok := ev.(agui.ToolCallStart); ok {
			r.hist.Calls[call.ToolCallID] = true
		}
	})
	if err != nil {
		return err
	}
	open := seq.Close()
	if !e.acquire() {
		return errTooManyRuns(e.cfg.MaxRuns)
	}
	r.st.Claims++
	c := e.claim(t, e.process)
	events := append(open, superseding(e.cfg.Now().UnixMilli(), "holdfast.takeover",
		map[string]any{"epoch": c.Fence.Epoch, "iteration": r.st.Iteration, "reason": "owner_gone"}, r.st)...)
	events = append(events, e.schemaEvent(states.change)...)
	c.Put = states.put
	for _, ev := range events[len(open):] {
		if _, err := seq.Next(ev); err != nil {
			e.release()
			return fmt.Errorf("take over: %w", err)
		}
	}
	c.Records = thread.EncodeEvents(events)
	r.st.Boundary = holdfast.Cursor{Number: t.Head.Next - 1 + uint64(len(events)), Tag: c.Fence.Tag()}
	c.State = r.st.Encode()
	if err := e.Commit(ctx, t.Place(), c); err != nil {
		e.release()
		return err
	}
	e.cfg.Observer.Claimed(t.Place(), ClaimTaken, "")
	e.cfg.Log.Info("resuming agent loop from checkpoint", "thread", t.Key.Thread, "run", r.st.Run, "iteration", r.st.Iteration, "takeover", true)
	e.announceSchema(t.Place(), states.change)
	r.resumed = true
	e.launch(r, thread.HeadAfter(c), seq, thread.RecordsOf(c))
	return nil
}

// rebuild makes a run out of what is stored.
func (e *Engine) rebuild(ctx context.Context, key holdfast.ThreadKey, st *thread.State) (*run, error) {
	raw, err := e.cfg.Store.Value(ctx, key, holdfast.KindRun, st.Run)
	if err != nil {
		return nil, thread.ReadError(err)
	}
	r := &run{rec: &thread.Run{}, st: st}
	if err := thread.Decode(raw, r.rec); err != nil {
		return nil, thread.ReadError(err)
	}
	if r.agent, err = e.Agent(st.Agent); err != nil {
		return nil, err
	}
	if r.hist, err = e.Read.History(ctx, key, st.Leaf); err != nil {
		return nil, err
	}
	if r.shared, err = e.Read.Shared(ctx, key, st.Shared); err != nil {
		return nil, err
	}
	if r.reuse, err = e.Read.Recorded(ctx, key, st); err != nil {
		return nil, err
	}
	r.doubted, err = e.Read.Intents(ctx, key)
	return r, err
}

// acquire takes a place among the runs of this process, release gives it back.
func (e *Engine) acquire() bool {
	select {
	case e.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (e *Engine) release() { <-e.slots }
