package loop

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A model that is an agent shows more than an answer: changes of the shared state, steps,
// activities, RAW and CUSTOM. A change of the state is committed by itself, and stands even if the
// message around it is taken back: another try of the model is given the state as it is.

// besides is a run that takes such events. Only the run's goroutine uses it.
type besides struct{ r *run }

// takeBeside takes an event that stands beside the answer. One that cannot be read is left out: the
// model checks what it passes on.
func (x besides) takeBeside(data json.RawMessage) error {
	r := x.r
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		x.leftOut(agui.TypeOf(data), err)
		return nil
	}
	switch e := ev.(type) {
	case agui.StateSnapshot:
		return x.changeState(agui.TypeStateSnapshot, func(json.RawMessage) (json.RawMessage, error) {
			return e.Snapshot, nil
		})
	case agui.StateDelta:
		return x.changeState(agui.TypeStateDelta, func(before json.RawMessage) (json.RawMessage, error) {
			return jsonpatch.Change(before, e.Delta)
		})
	case agui.StepStarted:
		return x.beginStep(e.StepName)
	case agui.StepFinished:
		if finish := r.going.beside.steps[e.StepName]; finish != nil {
			delete(r.going.beside.steps, e.StepName)
			finish()
		}
	case agui.ActivitySnapshot:
		return x.takeActivity(e.MessageID, e.ActivityType, e.Content)
	case agui.ActivityDelta:
		content, err := jsonpatch.Change(r.going.beside.activities[e.MessageID], e.Patch)
		if err != nil {
			x.leftOut(agui.TypeActivityDelta, err)
			return nil
		}
		return x.takeActivity(e.MessageID, e.ActivityType, content)
	case agui.Raw:
		return r.w.Add([]agui.Event{agui.Raw{Base: agui.Base{Timestamp: r.now()}, Event: e.Event, Source: e.Source}},
			journal.Soon, nil)
	case agui.Custom:
		return x.takeCustom(e)
	}
	return nil
}

// maxLeftOut is of how many events of a stream the log says that they are not shown.
const maxLeftOut = 10

// leftOut logs why an event of an agent's stream is not shown.
func (x besides) leftOut(kind agui.Type, err error) {
	r := x.r
	b := &r.going.beside
	b.leftOut++
	place := r.log.With("thread", r.key.Thread, "run", r.rec.ID, "iteration", r.st.Iteration)
	switch {
	case b.leftOut <= maxLeftOut:
		place.Warn("an event of a remote agent was left out; the run goes on, and the agent is to be mended",
			"event", kind, "error", err)
	case b.leftOut == maxLeftOut+1:
		place.Warn("more events of a remote agent are left out, and no longer logged one by one")
	}
}

// takeCustom passes an application's event on. The server's own names stay its own.
func (x besides) takeCustom(e agui.Custom) error {
	r := x.r
	base := agui.Base{Timestamp: r.now()}
	if strings.HasPrefix(e.Name, "holdfast.") {
		raw := thread.MustJSON(map[string]any{"name": e.Name, "value": e.Value})
		return r.w.Add([]agui.Event{agui.Raw{Base: base, Event: raw, Source: "remote"}}, journal.Soon, nil)
	}
	return r.w.Add([]agui.Event{agui.Custom{Base: base, Name: e.Name, Value: e.Value}}, journal.Soon, nil)
}

// changeState changes the shared state at once. A change that cannot be made is left out.
func (x besides) changeState(kind agui.Type, update holdfast.StateUpdate) error {
	r := x.r
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	before := r.shared.version.State
	if before == nil {
		before = json.RawMessage("null")
	}
	next, err := update(before)
	if err == nil {
		next, err = jsonpatch.Clean(next)
	}
	var c *thread.SharedChange
	if err == nil {
		c, err = r.shared.change(r.ctx, r.agent.Shared, next, func(next json.RawMessage) *thread.SharedChange {
			return r.shared.version.Change(next, thread.SharedAfter(r.host.Config.NewID("st")), r.st.Format, "",
				r.host.Config.Now().Time())
		})
	}
	if err != nil {
		x.leftOut(kind, err)
		return nil
	}
	if c == nil {
		return nil
	}
	return r.w.Add(shown(r.w, c), journal.Soon, func(commit *store.Commit, _ store.Cursor) {
		into(r.st, c)(commit)
		r.saveState(commit)
	})
}

// beginStep begins a step, unless it is open.
func (x besides) beginStep(name string) error {
	r := x.r
	b := &r.going.beside
	if b.steps[name] != nil {
		return nil
	}
	finish, err := activity.Step(r.ctx, name)
	if err != nil {
		x.leftOut(agui.TypeStepStarted, err)
		return nil
	}
	if b.steps == nil {
		b.steps = map[string]func(){}
	}
	b.steps[name] = finish
	return nil
}

// maxActivityName bounds what the agent calls the message of an activity, in bytes: each has it.
const maxActivityName = 256

// takeActivity shows an activity as it is now. id is what the agent calls its message.
func (x besides) takeActivity(id, kind string, content json.RawMessage) error {
	r := x.r
	b := &r.going.beside
	var err error
	if len(id)+len(kind) > maxActivityName {
		err = fmt.Errorf("the type and the messageId of an activity have more than %d bytes", maxActivityName)
	} else {
		err = activity.Change{Type: kind, Name: id, Content: content}.Show(r.ctx)
	}
	if err != nil {
		x.leftOut(agui.TypeActivitySnapshot, err)
		return nil
	}
	if b.activities == nil {
		b.activities = map[string]json.RawMessage{}
	}
	b.activities[id] = content // the next patch is of what is shown
	return nil
}
