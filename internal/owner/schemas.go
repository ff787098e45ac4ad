package owner

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// When a run begins, resumes or is taken over, the middleware's states are restored from
// the thread. The agent may have other middleware by now, or other versions of it. This
// file compares the schema that the states were written under with the agent's, migrates,
// sets aside or refuses states, and says what has changed, in the log and in the stream.

// schemas restores the states of runs.
type schemas struct {
	cfg     *loop.Config
	serving serving
}

// serving has the agents that new runs get.
type serving interface {
	Agents() *agents.Set
}

// restored is the states with which a run continues.
type restored struct {
	states *state.States
	// change is what is said about them; nil if nothing is.
	change *state.SchemaChange
	// put is the schema, if the thread does not hold it yet.
	put []store.Value
}

// restore restores the states in st for a run of the agent. It sets st.Schema.
func (x *schemas) restore(
	ctx context.Context, key store.ThreadKey, st *thread.State, a *agents.Agent,
) (*restored, error) {
	s := a.Schema
	out := &restored{}
	if st.Schema == s.Ref {
		out.states = s.Restore(s.Info(), st.Values(s.Info()), x.missingStep(key))
		return out, nil
	}
	old, err := x.stored(ctx, key, st)
	if err != nil {
		return nil, err
	}
	states := s.Restore(old, st.Values(old), x.missingStep(key))
	change := s.Compare(states)
	if states, err = x.refuseNewer(s, states, &change); err != nil {
		return nil, err
	}
	// States that another agent wrote, or that nobody wrote yet, count as unchanged.
	if st.Agent == a.Name && change.Any() && !(change.Upgrade && s.Empty()) {
		if err := x.judge(&change); err != nil {
			return nil, err
		}
		if x.cfg.SchemaMode != loop.SchemaSilent {
			out.change = &change
		}
	}
	out.states = s.Adopt(states)
	if !s.Empty() || st.Schema != "" {
		st.Schema = s.Ref
		out.put = []store.Value{{Kind: store.KindBlob, ID: thread.SchemaBlob(s.Ref), Data: thread.MustJSON(s.Info())}}
	}
	return out, nil
}

// stored reads the schema that the states in st were written under.
func (x *schemas) stored(
	ctx context.Context, key store.ThreadKey, st *thread.State,
) (info state.SchemaInfo, err error) {
	if st.Schema == "" {
		return info, nil
	}
	for _, a := range x.serving.Agents().List {
		if a.Schema.Ref == st.Schema {
			return a.Schema.Info(), nil
		}
	}
	if info, err = thread.ReadSchema(ctx, x.cfg.Store, key, st); err != nil {
		return info, thread.ReadError(key, err)
	}
	return info, nil
}

// missingStep returns what is called for a state that is read with defaults because the
// migration that it needs does not exist; nil in the mode in which that is an error.
func (x *schemas) missingStep(key store.ThreadKey) func(name string, from, to int) {
	switch x.cfg.SchemaMode {
	case loop.SchemaFail:
		return nil
	case loop.SchemaSilent:
		return func(string, int, int) {}
	}
	return func(name string, from, to int) {
		x.cfg.Log.Warn("a stored state has no migration and is read with defaults",
			"thread", key.Thread, "state", name, "from", from, "to", to)
	}
}

// refuseNewer refuses states of a version that is not known here, or sets them aside.
func (x *schemas) refuseNewer(
	s *thread.Schema, states *state.States, change *state.SchemaChange,
) (*state.States, error) {
	if len(change.TooNew) == 0 {
		return states, nil
	}
	if !x.cfg.ResetNewerStates {
		return nil, errStateTooNew(change.TooNew[0])
	}
	var names []string
	for _, c := range change.TooNew {
		names = append(names, c.Name)
	}
	return s.SetAside(states, names), nil
}

func errStateTooNew(c state.VersionChange) *holdfast.Error {
	return holdfast.Errorf(codes.StateTooNew,
		"The state %q has version %d, but this server knows it only up to version %d.", c.Name, c.From, c.To).
		WithHint("It was left as it is. Run a version that knows it, or start with --on-newer-state=reset to reset "+
			"that state and keep its newer value aside.").
		With("state", c.Name).
		With("version", c.From).
		With("known", c.To)
}

// judge returns an error if the mode does not allow the change.
func (x *schemas) judge(change *state.SchemaChange) error {
	if x.cfg.SchemaMode != loop.SchemaFail || change.Upgrade {
		return nil
	}
	versions := []string{}
	for _, c := range change.Changed {
		versions = append(versions, c.Name)
	}
	return holdfast.Errorf(codes.SchemaChanged,
		"The thread was written with other middleware states than this server has (removed: %s; added: "+
			"%s; other version: %s).", listOr(change.Removed), listOr(change.Added), listOr(versions)).
		WithHint("Nothing was changed. Run the version that wrote it, or start with --schema-changes=warn.").
		With("removed", append([]string{}, change.Removed...)).
		With("added", append([]string{}, change.Added...)).
		With("changed", versions)
}

// listOr lists names; "none" if there are none.
func listOr(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return state.ShortNames(names)
}

// announce logs what has changed, and reports it to the observer.
func (x *schemas) announce(at holdfast.Iteration, change *state.SchemaChange) {
	if change == nil {
		return
	}
	x.cfg.Observer.SchemaChanged(at, change)
	log := x.cfg.Log.With("thread", at.Thread, "run", at.Run, "iteration", at.Number)
	if change.Upgrade {
		log.Info("resuming from a checkpoint that is older than schema versioning; it is " +
			"upgraded to the current schema")
		return
	}
	if n := len(change.Removed); n > 0 {
		log.Warn("the checkpoint has the state of middleware that is not here any more; it is kept, and nobody reads "+
			"it (expected after a middleware was removed)",
			"count", n, "states", state.ShortNames(change.Removed))
	}
	if n := len(change.Added); n > 0 {
		log.Info("there is middleware that the checkpoint does not know; its state begins with the initial value",
			"count", n, "states", state.ShortNames(change.Added))
	}
	for _, c := range change.Changed {
		log.Info("a state has another version than in the checkpoint",
			"state", state.ShortNames([]string{c.Name}), "from", c.From, "to", c.To)
	}
}

// event returns the event for a change; nothing without one.
func (x *schemas) event(change *state.SchemaChange) []agui.Event {
	if change == nil {
		return nil
	}
	now := x.cfg.Now()
	listed := *change // a list without entries is a list
	listed.Removed, listed.Added = append([]string{}, change.Removed...), append([]string{}, change.Added...)
	listed.Changed = append([]state.VersionChange{}, change.Changed...)
	value := struct {
		state.SchemaChange
		Timestamp string `json:"timestamp"`
	}{listed, now.UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	return []agui.Event{
		agui.Custom{
			Base:  agui.Base{Timestamp: now.UnixMilli()},
			Name:  "holdfast.schema_changed",
			Value: thread.MustJSON(value),
		},
	}
}

// shown returns the middleware's states in st as the thread's owner may see them;
// nil if there are none.
func (x *schemas) shown(ctx context.Context, key store.ThreadKey, st *thread.State) (json.RawMessage, error) {
	if st.Schema == "" && len(st.States) == 0 {
		return nil, nil
	}
	info, err := x.stored(ctx, key, st)
	if err != nil {
		return nil, err
	}
	s := &thread.Schema{Schema: thread.EmptySchema()}
	if a, here := x.serving.Agents().ByName[st.Agent]; here {
		s = a.Schema
	}
	return s.Shown(s.Restore(info, st.Values(info), func(string, int, int) {}))
}
