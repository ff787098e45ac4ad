package loop

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// A run while this process owns it. Its goroutine iterates (iterate.go) and is the only one
// that changes the thread's state; everything it produces goes through its journal to the
// store. However the goroutine ends, the thread has an end or a wait that the log shows, or no
// living owner, so that any process that finds it takes it over.

// run is one run in this process. Its goroutine owns the thread: it alone changes st and
// hist, and it alone writes.
type run struct {
	host   *Host
	owner  owner // of the thread, as this process believes
	key    store.ThreadKey
	rec    *thread.Run
	agent  *agents.Agent
	tools  agents.RunTools
	st     *thread.State
	hist   *thread.History
	shared shared
	places places // in shared, for what calls predict
	// messages are the history as models see it.
	messages []holdfast.Message
	notes    notes
	labels   labels
	// activities and steps are what tools and hooks show of their work.
	activities activities
	steps      steps
	// hidden are the ids of the calls that are not among them, because their messages are
	// not; see show.
	hidden map[string]bool
	// imported counts the messages of the history that a client brought. Other goroutines
	// read it in place.
	imported atomic.Int64
	// inherited has the ids of the calls that were open when the run was continued here, and
	// whether their tools may still be waited for.
	inherited map[string]bool
	// doubted are the ids of the calls that an owner that died had started.
	doubted map[string]bool
	// starts are the calls that were started here.
	starts  starts
	w       *journal.Writer
	feed    *journal.Feed
	ctx     context.Context
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when it has ended here
	started clock.Moment
	// busy means that calls of the run go on although it has been cut off.
	busy    bool
	log     *slog.Logger // with the id of the run's trace, if it has one
	resumed bool
	// repeats means that the run was taken over, and no model has answered it here yet.
	repeats bool
	side    bool // see SideRun
	// cancelled means that the run is continued only to be ended.
	cancelled bool
	// failed returns what is shown of the answer in whose middle the run has failed; nil if there is none.
	failed func() []agui.Message
	// stale means that clients may show reasoning that was taken back; see mend.
	stale bool
	chain *hooks.Chain
	// models are those of the agent, and model is the place of the one that is asked.
	models fallback.Chain
	model  int
	// going is the stream of a model that is an agent, and goes on; nil if there is none. lost is
	// why the last one broke off between two messages, and losses counts those without a complete
	// message between them.
	going  *going
	lost   error
	losses int
	// tried counts the tries of the last model call.
	tried int
	// inner is ctx with what the Run hooks put into it.
	inner context.Context
	// at is where the run stands, for hooks and tools.
	at atomic.Pointer[holdfast.Iteration]
	// live holds the middleware's states.
	live *state.Live
	// number is st.Iteration, for other goroutines.
	number atomic.Int64
	// recorded are the results that calls may get instead of running, by
	// thread.CallHash.
	recorded map[string][]store.Value
	// counted is how many of st.Bytes are counted for the limits of the tenant and the user.
	counted int64
	// warned means that the run has said that its thread is large.
	warned bool
	// results counts the results that no checkpoint holds yet.
	results int
	// marks tracks the intents and pending writes that the store holds.
	marks marks
	inbox inbox
	keeps keeps
	// arrivals are what has come from outside for the run's calls.
	arrivals arrivals
	// stored is the state as it was last given to the writer, in whose turn it changes.
	stored []byte
}

// errCancelled is the cause of a run that its user cancelled.
var errCancelled = holdfast.ErrCancelled

// remember adds the message at a place of the history to what models see.
func (r *run) remember(at int) {
	m := &r.hist.Path[at]
	d, ok := r.hist.Domain(at)
	if !ok || thread.Failed(m) {
		return
	}
	if d.Role == holdfast.RoleActivity {
		if c, is := thread.ActivityChangeOf(m); is {
			r.activities.note(&r.notes, c.Of)
		} else if !r.notes.remember(&r.messages, m) {
			r.notes.grow(r.messages, &d)
		}
		return
	}
	if d.Role == holdfast.RoleUser {
		r.activities.turn()
	}
	if d.Imported {
		r.imported.Add(1)
	}
	if d, shown := r.show(d); shown {
		r.tell(d)
		for _, d := range behind(m) {
			r.tell(d)
		}
	}
}

// tell adds a message to what models see, as they see it.
func (r *run) tell(d holdfast.Message) {
	r.messages = append(r.messages, d)
	r.notes.grow(r.messages, &r.messages[len(r.messages)-1])
}

// show returns a message as the agent's model is shown it, and whether it is shown at all.
// The agent's policy for clients was applied when the message came in, but that may have
// been another agent, or another configuration, so it counts here once more. Calls and
// their results are shown together or not at all.
func (r *run) show(m holdfast.Message) (holdfast.Message, bool) {
	p := &r.agent.Client
	takes := p.Import == "" || p.Import == thread.ImportAll
	switch {
	case decide.Instructs(m.Role):
		if !takes || p.Instructions == thread.ShowNothing {
			return m, false
		}
		if p.Instructions == thread.ShowAsUser {
			m.Role, m.Text, m.Parts = holdfast.RoleUser, hooks.ClientText(hooks.ClientInstructions, m.PlainText()), nil
		}
	case m.Role == holdfast.RoleTool:
		if r.hidden[m.CallID] {
			return m, false
		}
	case m.Imported && !takes:
		if r.hidden == nil {
			r.hidden = map[string]bool{}
		}
		for _, c := range m.Calls {
			r.hidden[c.ID] = true
		}
		return m, false
	}
	if m.Imported || m.Role == holdfast.RoleUser {
		m = decide.Withhold(m, p)
	}
	return m, true
}

// completed reports whether the history ends in an answer without open calls. It is asked
// before anything else, because an owner may have died right after committing the
// answer. An answer may end in reasoning, and activities may follow it. One that has failed, or
// was kept although it does not have its form, is no end.
func (r *run) completed() bool {
	leaf := len(r.hist.Path) - 1
	for leaf >= 0 && (r.hist.Path[leaf].Role == string(holdfast.RoleReasoning) || thread.Aside(&r.hist.Path[leaf])) {
		leaf--
	}
	return leaf >= 0 && len(r.st.Calls) == 0 && !r.st.More &&
		r.hist.Path[leaf].Role == string(holdfast.RoleAssistant) && thread.MisfitOf(&r.hist.Path[leaf]) == nil
}

// moveTo sets where the run stands, for hooks and tools.
func (r *run) moveTo(iteration int) {
	r.number.Store(int64(iteration))
	at := &holdfast.Iteration{
		Agent:       r.rec.Agent,
		Principal:   r.principal(),
		Thread:      r.key.Thread,
		Incarnation: r.st.Incarnation,
		Rewinds:     r.st.Rewinds,
		Run:         r.rec.ID,
		Number:      iteration,
		Granted:     iteration - r.st.GrantedAt,
		Imported:    int(r.imported.Load()),
		Traceparent: r.rec.Traceparent,
		Side:        r.side,
	}
	if r.st.Question != nil {
		at.Answer = handed(r.st.Question.Answer, r.st.Question.Interrupt)
	}
	r.at.Store(at)
}

// principal returns for whom the run runs.
func (r *run) principal() holdfast.Principal {
	return holdfast.Principal{Tenant: r.key.Tenant, User: r.rec.User}
}

// now returns the time for events, in milliseconds since 1970.
func (r *run) now() int64 { return r.host.Config.Now().UnixMilli() }

// place returns where the run stands. Other goroutines may call it too.
func (r *run) place() holdfast.Iteration {
	return holdfast.Iteration{
		Agent:       r.rec.Agent,
		Principal:   r.principal(),
		Thread:      r.key.Thread,
		Run:         r.rec.ID,
		Number:      int(r.number.Load()),
		Imported:    int(r.imported.Load()),
		Traceparent: r.rec.Traceparent,
	}
}

// saveState puts the run's state into a commit; the writer calls it.
func (r *run) saveState(c *store.Commit) {
	r.st.Marked, r.st.Predicted = r.labels.joined(), r.w.Predicts()
	c.Key, c.User = r.key, r.rec.User
	thread.Save(c, r.st)
	r.stored = c.State
}

// reasons reports whether there is reasoning among the messages.
func reasons(messages []agui.Message) bool {
	return slices.ContainsFunc(messages, func(m agui.Message) bool { return m.Role == string(holdfast.RoleReasoning) })
}
