package owner

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The beginning of the road: a POST is decided here and, if it starts anything, begun.
// Under the thread's lock the engine reads the thread, makes sure that a run on it has a
// living owner, decides (package decide), and makes the first commit (begin.go). If the
// head has moved meanwhile, all of it is done again; if it is not known whether the owner
// lives, the request waits first (silence.go). The reply is a stream of the log
// (watch.go), which does not depend on the run.

// maxDecisions bounds how often a POST is decided again because the thread's head moved.
const maxDecisions = 8

// asking is a POST, and what it has waited for.
type asking struct {
	who      holdfast.Principal
	agent    string // the one that was asked for; empty for any
	in       *agui.RunAgentInput
	owner    vigil
	verdicts decide.Verdicts
}

// decider decides what POSTs mean, and begins what they start.
type decider struct {
	*house
	// turns lets requests be decided some at a time, so that the runs that go on do not wait
	// for all of those that begin. Requests admitted together stay in step, so one wake-up
	// serves several runs.
	turns     *turns.Turns
	locks     *locks
	residents *residents
	takeovers *takeovers
	starter   *starter
}

// orAgain returns errDecideAgain instead of an error that is due to what has happened to
// the thread since it was read.
func (d *decider) orAgain(ctx context.Context, t *thread.Thread, err error) error {
	if err != nil && t.Head != nil && d.read.Moved(ctx, t, err) {
		return errDecideAgain
	}
	return err
}

// decided reads the thread, makes sure of its owner, decides, and makes the first commit
// of what is to start, all under the thread's lock. While it must wait, the error is a
// silence; while it depends on what may take long to compute, it is openChecks.
func (d *decider) decided(ctx context.Context, a *asking) (*plan, error) {
	who, in := a.who, a.in
	leave, err := d.turns.Take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer d.locks.lock(store.ThreadKey{Tenant: who.Tenant, Thread: in.ThreadID})()
	t, err := d.read.Load(ctx, who, in.ThreadID)
	if err != nil {
		return nil, err
	}
	moved, err := d.takeovers.ensureOwner(ctx, t, &a.owner)
	if err != nil {
		return nil, d.orAgain(ctx, t, err)
	}
	if moved {
		return nil, errDecideAgain
	}
	agents := d.Take()
	defer agents.Drop()
	p := &plan{Thread: t, in: in}
	if p.agent, err = d.agentFor(agents, t, a.agent); err != nil {
		return nil, err
	}
	p.box = p.agent.Toolboxes.Now()
	s, err := d.situation(ctx, t, p)
	if err != nil {
		return nil, d.orAgain(ctx, t, err)
	}
	if p.req, err = p.request(a.agent, a.verdicts); err != nil {
		return nil, err
	}
	p.d = decide.Decide(s, p.req, d.cfg.Now().Time())
	if p.d.Do == decide.Find {
		return nil, &openChecks{p.d.Checks}
	}
	if in.Chat && p.d.Do == decide.Reject {
		p.d = askedAgain(p.d)
	}
	if err := d.authorize(ctx, who, p); err != nil {
		return nil, err
	}
	if err := p.choose(); err != nil || p.aside {
		return p, err
	}
	switch p.d.Do {
	case decide.Fresh, decide.Resume, decide.Keep:
		return p, d.orAgain(ctx, t, d.starter.begin(ctx, who, p))
	}
	return p, nil
}

// askedAgain turns answers that are refused into a look at the thread, which still asks: the
// page of a frontend cannot show the error, and can ask again. The person's answers are not
// for the log.
func askedAgain(d decide.Decision) decide.Decision {
	switch d.Err.Code {
	case codes.InvalidAnswer:
		return decide.Decision{
			Do:      decide.Hydrate,
			Warning: "resume ignored: an answer is not what its question asks for",
		}
	case codes.AnswersMissing:
		return decide.Decision{Do: decide.Hydrate, Warning: "resume ignored: it does not answer every open question"}
	}
	return d
}

// authorize asks whether the caller may do what was decided. A rejection needs no leave.
func (d *decider) authorize(ctx context.Context, who holdfast.Principal, p *plan) error {
	if d.cfg.Authorize == nil {
		return nil
	}
	switch p.d.Do {
	case decide.Reject:
		return nil
	case decide.Attach, decide.FromStart, decide.Hydrate:
		return d.cfg.Authorize(ctx, who, access.Read, "")
	}
	action := access.Run
	if len(p.d.Answers) > 0 {
		action = access.Answer
		if p.agent.Approvals == access.RoleApprover {
			action = access.Approve
		}
	}
	return d.cfg.Authorize(ctx, who, action, p.agent.Name)
}

// agentFor returns the agent that was asked for. A request that names none goes to the one
// that has unfinished work on the thread. While that runs here it is the run's own, which may
// not be among the agents any more.
func (d *decider) agentFor(agents *agents.Set, t *thread.Thread, name string) (*agents.Agent, error) {
	if r := d.residents.local(t.Key); r != nil && t.Head != nil && t.State.Running() &&
		(name == "" || name == r.start.Agent.Name) {
		return r.start.Agent, nil
	}
	if name == "" && t.Head != nil && (t.State.Status() != threads.StatusIdle || len(t.State.Calls) > 0) {
		return agents.OfThread(t)
	}
	return agents.Named(name)
}

// situation returns what decide needs to know about the thread.
func (d *decider) situation(ctx context.Context, t *thread.Thread, p *plan) (decide.Situation, error) {
	if t.Head == nil {
		return decide.Situation{}, nil
	}
	last := t.History.Last()
	s := decide.Situation{
		Exists:     true,
		Thread:     t.Key.Thread,
		Status:     t.State.Status(),
		Run:        t.State.Run(),
		Agent:      t.State.Agent,
		Iteration:  t.State.Iteration,
		Outcome:    t.State.Outcome(),
		Interrupts: t.State.Interrupts(),
		Pending:    t.State.PendingFrontend(),
		Answers:    t.State.Answers,
		Outside:    outsideOpen(t.State, d.cfg.Now().Time()),
		Incomplete: last >= 0 && decide.Completable(t.History.Path[last].Role) &&
			t.State.Outcome() != holdfast.OutcomeCancelled,
	}
	s.Parameters = p.parameters()
	var err error
	if s.Known, err = d.known(ctx, t, p.in.RunID); err != nil || s.Known == nil || len(p.in.Resume) == 0 ||
		s.Known.Hash == p.in.Hash() {
		return s, err
	}
	// The same answers, under the same used id, may have begun a run before.
	resumed, err := d.known(ctx, t, decide.ResumeRun(t.Key.Thread, p.in.Resume))
	if resumed != nil {
		s.Known = resumed
	}
	return s, err
}

// known returns the thread's run of that id; nil if it has none.
func (d *decider) known(ctx context.Context, t *thread.Thread, run string) (*decide.KnownRun, error) {
	raw, err := d.cfg.Store.Value(ctx, t.Key, store.KindRun, run)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	var rec thread.Run
	if err := thread.Decode(raw, &rec); err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	return &decide.KnownRun{ID: run, Hash: rec.Hash}, nil
}

// outsideOpen returns the open calls that were handed out, as a decision sees them.
func outsideOpen(st *thread.State, now time.Time) []decide.OutsideCall {
	var open []decide.OutsideCall
	for i := range st.Calls {
		if c := &st.Calls[i]; c.Outside != nil {
			open = append(open, decide.OutsideCall{
				ID:          c.ID,
				Finished:    !c.WaitsOutside() || c.Expired(now),
				Abandonable: c.Outside.Abandonable,
			})
		}
	}
	return open
}
