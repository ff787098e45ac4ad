package upkeep

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Going back. A rewind takes a thread back to a checkpoint or a message; a fork begins a
// new thread there. Both read the state at that point, list the calls that were carried
// out since, whose effects stay, and turn the state into one that a thread can stand in.
// A call that is open there but was carried out later is in doubt, like one whose process
// died. A rewind is one commit to a thread that does not run; a fork is the first commit
// of the new one.

// departure is the point that a thread goes back to, and what has happened since.
type departure struct {
	st *thread.State // what the thread goes back to
	// from is the id of the checkpoint; empty for a message.
	from string
	hist *thread.History // up to there
	past []past          // what was called since
	// redo are the open calls that were carried out, or may have been, since then.
	redo  []thread.Call
	blind bool // what has happened since cannot be read
	reuse bool // record results
	// chosen are the calls whose results are recorded; nil for all.
	chosen []string
	// onlyRecorded: calls without a recorded result do not run.
	onlyRecorded bool
	// kept are the recorded results, as values.
	kept []store.Value
	// left are the outside calls that are open now and are not any more where the thread goes.
	left []thread.Call
	// frontend are the names of the tools that the last run's client declared.
	frontend []string
}

// past is a call that was made after that point.
type past struct {
	call   string
	made   madeCall
	result *agui.Message // nil without one
}

// madeCall is a call as the model made it.
type madeCall struct{ name, arguments string }

// depart reads the state to go back to, and what has happened since. If that is damaged, a
// fork of a checkpoint before the damage can still be made.
func (k *Keeper) depart(ctx context.Context, t *thread.Thread, to threads.Travel, forks bool) (*departure, error) {
	d := &departure{reuse: to.ReuseResults || to.OnlyRecorded || len(to.Reuse) > 0, onlyRecorded: to.OnlyRecorded}
	switch {
	case to.Checkpoint != "":
		cp, err := k.checkpointAt(ctx, t.Key, to.Checkpoint)
		if err != nil {
			return nil, err
		}
		d.st, d.from = cp.State.Clone(), cp.ID
	case to.Message != "":
		if err := d.toMessage(t, to.Message); err != nil {
			return nil, err
		}
	default:
		d.st, d.from = t.State.Clone(), t.State.LastCheckpoint
	}
	now, err := k.read.Resumable(ctx, t)
	d.blind = forks && to.Checkpoint != "" && thread.Unreadable(err) && !k.read.Moved(ctx, t, err)
	if err != nil && !d.blind {
		return nil, err
	}
	there, err := k.read.Ground(ctx, &thread.Thread{Key: t.Key, State: d.st})
	if err != nil {
		return nil, err
	}
	d.hist = there.History
	if d.blind {
		d.assumePast(func(*thread.Call) bool { return true })
	} else {
		d.findPast(now)
		if forks && t.State.Running() { // it may be about to make them, or have made them since it was read
			d.assumePast(func(c *thread.Call) bool { return c.Interrupt == nil })
		}
		for _, tool := range now.Run.Tools {
			d.frontend = append(d.frontend, tool.Name)
		}
	}
	if !forks {
		d.leaveOutside(t.State, now)
		d.leaveStates(k, t, there.Shared)
	}
	if err := d.chooseResults(to); err != nil {
		return nil, err
	}
	if d.reuse {
		if err := k.keepResults(ctx, t, d, there.Shared.State); err != nil {
			return nil, err
		}
	}
	d.restAt(k)
	// The counters are the thread's, not the checkpoint's.
	d.st.Checkpoints, d.st.LastCheckpoint, d.st.Bytes = t.State.Checkpoints, t.State.LastCheckpoint, t.State.Bytes
	d.st.Origin, d.st.Count, d.st.TakenBack = t.State.Origin, len(d.hist.Path), t.State.TakenBack
	d.st.Described, d.st.Tended, d.st.StateWork = t.State.Described, t.State.Tended, thread.StateWork{}
	return d, nil
}

// leaveStates gives the state that the thread goes back to a name of its own, if it is not the one that it
// has: the names of the versions that follow it are taken.
func (d *departure) leaveStates(k *Keeper, t *thread.Thread, there thread.Shared) {
	if there.ID == "" || there.ID == t.State.Shared || t.State.Format < thread.FormatPatched {
		return
	}
	d.st.Shared = k.cfg.NewID("s")
	d.kept = append(d.kept, store.Value{Kind: store.KindBlob, ID: d.st.Shared, Data: there.State})
}

// toMessage goes back to a message of the path and the results that follow it. The shared
// state stays as it is now, because no version of it belongs to a message.
func (d *departure) toMessage(t *thread.Thread, id string) error {
	i, ok := t.History.Index[id]
	if !ok {
		return holdfast.Errorf(codes.NotFound, "There is no message %q in the history of thread %q.", id, t.Key.Thread).
			WithHint("GET /threads/{thread}/messages shows the history.")
	}
	i, whole := t.History.WholeFrom(i)
	if !whole {
		return holdfast.Errorf(codes.InvalidInput, "Message %q makes calls that have no result yet.", id).
			WithHint("Go to the message before it, or to a checkpoint.").With("messageId", id)
	}
	d.st = t.State.Clone()
	d.st.Rewind(t.History.Path[i].ID)
	return nil
}

// findPast lists the calls since then on the path that is left: those with a result, and
// those that were started and have none.
func (d *departure) findPast(now *thread.Resumable) {
	made := callsOf(now.History.Path)
	for i := range now.History.Path {
		m := &now.History.Path[i]
		if _, before := d.hist.Index[m.ID]; before || m.Role != string(holdfast.RoleTool) || thread.MarkOf(m).NotRun {
			continue
		}
		d.past = append(d.past, past{call: m.ToolCallID, made: made[m.ToolCallID], result: m})
	}
	for _, id := range slices.Sorted(maps.Keys(now.Started)) {
		d.past = append(d.past, past{call: id, made: made[id]})
	}
}

// leaveOutside lists the outside calls that the thread leaves open. The work that they were
// handed out for is still done.
func (d *departure) leaveOutside(now *thread.State, all *thread.Resumable) {
	made := callsOf(all.History.Path)
	for i := range now.Calls {
		c := &now.Calls[i]
		if c.Outside == nil || d.st.Call(c.ID) != nil {
			continue
		}
		d.left = append(d.left, *c)
		if !all.Started[c.ID] {
			d.past = append(d.past, past{call: c.ID, made: made[c.ID]})
		}
	}
}

// assumePast adds open calls of which it is not known whether they have been made.
func (d *departure) assumePast(unknown func(*thread.Call) bool) {
	made := callsOf(d.hist.Path)
	for i := range d.st.Calls {
		call := &d.st.Calls[i]
		known := slices.ContainsFunc(d.past, func(p past) bool { return p.call == call.ID })
		if !call.Frontend && !known && unknown(call) {
			d.past = append(d.past, past{call: call.ID, made: made[call.ID]})
		}
	}
}

// callsOf returns the calls that the messages make, by id.
func callsOf(messages []agui.Message) map[string]madeCall {
	made := map[string]madeCall{}
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			made[c.ID] = madeCall{name: c.Function.Name, arguments: c.Function.Arguments}
		}
	}
	return made
}

// restAt turns a state that was taken in mid-run into one that a run can continue from.
// Questions are asked again, under new ids, because the old answers have been used.
func (d *departure) restAt(k *Keeper) {
	st := d.st
	effects := k.effects(st.Agent, d.frontend)
	for i := range st.Calls {
		c := &st.Calls[i]
		c.TakeIn() // the URLs are those of the thread as it was
		i := slices.IndexFunc(d.past, func(p past) bool { return p.call == c.ID })
		happened := i >= 0 && !c.Frontend
		// A call that waits for a person is left to that person.
		if happened && c.Interrupt == nil {
			c.Again = true
			d.redo = append(d.redo, *c)
		}
		if c.Interrupt != nil {
			again := *c.Interrupt
			again.ID = k.cfg.NewID("int")
			// One that has kept something goes on with that, whatever the answer is.
			if happened && c.Kept == nil && effects(d.past[i].made.name) != string(holdfast.EffectPure) &&
				!strings.HasSuffix(again.Message, textHappened) {
				again.Message = strings.TrimPrefix(again.Message+" "+textHappened, " ")
			}
			c.Interrupt, c.Answer = &again, nil
		}
	}
	if q := st.Question; q != nil {
		again := *q.Interrupt
		again.ID = k.cfg.NewID("int")
		st.Question = &thread.Question{Interrupt: &again}
	}
	st.Takeovers, st.Answers = 0, nil
	st.Rest(errWentBack(st.Iteration))
}

// textHappened is the end of a question about a call that was carried out before the
// thread went back to the question.
const textHappened = "Note that this was carried out before, which going back has not undone: a " +
	"yes carries it out again."

// arrive completes the commit that takes a thread back, and says in out what it did.
func (k *Keeper) arrive(c *store.Commit, d *departure, cp thread.Checkpoint, out *threads.Traveled) {
	out.Effects, out.EffectsIncomplete = []threads.PastEffect{}, d.blind
	effects := k.effects(d.st.Agent, d.frontend)
	for _, p := range d.past {
		if effect := effects(p.made.name); effect != string(holdfast.EffectPure) {
			out.Effects = append(out.Effects, p.effect(effect))
		}
	}
	tools := k.engine.Tools(d.st.Agent)
	for _, call := range d.redo {
		// The call has been carried out once. With an intent it is in doubt, and does not
		// simply run again.
		open := d.st.Call(call.ID)
		i := thread.Intent{Fence: c.Fence, At: k.cfg.Now().Time()}
		if tool := slices.IndexFunc(tools, func(s holdfast.ToolSpec) bool { return s.Name == open.Name }); tool >= 0 {
			i.Effect, i.InDoubt = tools[tool].Effect, tools[tool].InDoubt
		}
		thread.PutIntent(c, d.st.CallKey(c.Key, c.User, open), open, d.hist, i)
	}
	for i := range d.left {
		thread.PutOutsideEnd(c, &d.left[i], k.cfg.Now().Time())
	}
	c.Put = append(c.Put, d.kept...)
	d.st.Reuse, d.st.OnlyRecorded = d.reuse, d.onlyRecorded
	made := k.list(c, d.st, cp)
	wrote(d.st, c)
	thread.Save(c, d.st)
	out.Checkpoint = made.Public(c.Key.Thread)
}

// errWentBack is why a thread that went back into the middle of a run is stopped.
func errWentBack(iteration int) *holdfast.Error {
	return holdfast.Errorf(codes.MidExecution,
		"The thread went back to iteration %d of a run. To go on from there, %s.", iteration, thread.HintEmptyPost)
}
