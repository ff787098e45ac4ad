package inspector

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A thread's unfinished work is in its head, and beside it: an intent for each call that has
// started, and a pending write for each result that no checkpoint holds. They are read after
// the head, so that a call that ends meanwhile is recorded, and never missing. Once a
// checkpoint has its result it would seem not to have started, so all is read again if the
// head has moved.

// Work returns what is under way on a thread and in no checkpoint yet.
func (in *Inspector) Work(ctx context.Context, who holdfast.Principal, id string) (*threads.Work, error) {
	for tries := 1; ; tries++ {
		t, err := in.read.Existing(ctx, who, id)
		if err != nil {
			return nil, err
		}
		out, err := in.workOf(ctx, t)
		if err != nil {
			return nil, err
		}
		head, err := in.cfg.Store.Head(ctx, t.Key)
		if err != nil || head.ETag == t.Head.ETag || tries == maxTries {
			return out, nil // what is out of date is good enough
		}
	}
}

// maxTries bounds how often a thread that keeps changing is read.
const maxTries = 3

// workOf describes what is under way on a thread, as it was when it was read.
func (in *Inspector) workOf(ctx context.Context, t *thread.Thread) (*threads.Work, error) {
	w, err := in.working(ctx, t)
	if err != nil {
		return nil, err
	}
	pending, err := in.read.PendingWrites(ctx, t)
	if err != nil {
		return nil, err
	}
	out := &threads.Work{
		Run:       t.State.Run(),
		Status:    t.State.Status(),
		Iteration: t.State.Iteration,
		Process:   t.Head.Process,
		Epoch:     t.Head.Fence.Epoch,
		Calls:     []threads.WorkCall{},
	}
	recorded := map[string]bool{}
	for i := range pending {
		recorded[pending[i].CallID] = true
	}
	for i := range t.State.Calls {
		if c := &t.State.Calls[i]; !recorded[c.ID] {
			out.Calls = append(out.Calls, w.open(c))
		}
	}
	for i := range pending {
		out.Calls = append(out.Calls, w.recorded(&pending[i]))
	}
	return out, nil
}

// working reads what it takes to describe open calls.
func (in *Inspector) working(ctx context.Context, t *thread.Thread) (*working, error) {
	rec, err := in.read.Run(ctx, t.Key, t.State.Run())
	if err != nil {
		return nil, err
	}
	w := &working{t: t, effect: in.effects(rec)}
	w.intents, err = in.intents(ctx, t.Key)
	return w, err
}

// intents reads what was about to be done, by call.
func (in *Inspector) intents(ctx context.Context, key store.ThreadKey) (map[string]*thread.Intent, error) {
	values, err := in.cfg.Store.Values(ctx, key, store.KindIntent, "", 0)
	if err != nil {
		return nil, thread.ReadError(key, err)
	}
	found := map[string]*thread.Intent{}
	for _, v := range values {
		i := &thread.Intent{}
		if err := thread.Decode(v.Data, i); err != nil {
			return nil, thread.ReadError(key, err)
		}
		if !i.NotStarted {
			found[v.ID] = i
		}
	}
	return found, nil
}

// effects returns a function that says what effect a tool declares: of the agent, or of the
// client of the run.
func (in *Inspector) effects(rec *thread.Run) func(tool string) string {
	declared := map[string]string{}
	for _, t := range rec.Tools {
		declared[t.Name] = frontend
	}
	for _, spec := range in.cfg.Tools(rec.Agent) {
		if declared[spec.Name] = string(spec.Effect); spec.Effect == "" {
			declared[spec.Name] = string(holdfast.EffectIdempotent)
		}
	}
	return func(tool string) string {
		if effect, known := declared[tool]; known {
			return effect
		}
		return "unknown"
	}
}

// frontend is the effect of a tool that the client runs.
const frontend = "frontend"

// working is a thread while its work is described.
type working struct {
	t       *thread.Thread
	intents map[string]*thread.Intent
	effect  func(tool string) string
}

// open describes a call without a result.
func (w *working) open(c *thread.Call) threads.WorkCall {
	out := threads.WorkCall{ID: c.ID, Tool: c.Name, Effect: w.effect(c.Name), Attempts: c.Attempts}
	intent := w.intents[c.ID]
	if intent != nil {
		out.StartedAt = intent.At.UTC()
		if intent.Effect != "" {
			out.Effect = string(intent.Effect)
		}
	}
	if c.Frontend {
		out.Effect = frontend
	} else {
		out.Key = w.t.State.CallKey(w.t.Key, w.t.Head.User, c)
	}
	if c.Waits() {
		out.Interrupt = c.Interrupt.ID
	}
	if out.State = w.state(c, intent, out.Effect); out.State != threads.CallPlanned &&
		out.State != threads.CallWaiting {
		out.Attempts = max(out.Attempts, 1)
	}
	return out
}

// state returns how far an open call has come.
func (w *working) state(c *thread.Call, intent *thread.Intent, effect string) threads.CallState {
	running := w.t.State.Running()
	switch {
	case c.InDoubt:
		return threads.CallInDoubt
	case c.Outside != nil:
		return threads.CallOutside
	case c.Waits(), c.Frontend:
		return threads.CallWaiting
	case intent == nil && running && effect == string(holdfast.EffectPure):
		return threads.CallStarted // it is not worth an intent
	case intent == nil:
		return threads.CallPlanned
	case !running:
		return threads.CallInDoubt
	case intent.Fence != w.t.Head.Fence &&
		(effect == string(holdfast.EffectOnce) || effect == string(holdfast.EffectQuery)):
		return threads.CallInDoubt // it is not simply started again
	}
	return threads.CallStarted
}

// recorded describes a call whose result no checkpoint holds yet.
func (w *working) recorded(p *threads.PendingWrite) threads.WorkCall {
	out := threads.WorkCall{
		ID:       p.CallID,
		Tool:     p.Tool,
		State:    threads.CallRecorded,
		Effect:   w.effect(p.Tool),
		Attempts: 1,
		Message:  p.Message,
		Result:   p.Result,
		Failed:   p.Failed,
		EndedAt:  p.CompletedAt.UTC(),
	}
	if c := w.t.State.Call(p.CallID); c != nil { // it ended after the head was read
		out.Attempts = max(c.Attempts, 1)
	}
	if i := w.intents[p.CallID]; i != nil {
		if out.Key, out.StartedAt = i.Key, i.At.UTC(); i.Effect != "" {
			out.Effect = string(i.Effect)
		}
	}
	return out
}
