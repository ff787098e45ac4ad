package owner

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/quota"
)

// places are what the runs of this process take, and the limits of tenants and users.
type places struct {
	limits *quota.Limiter
	taken  chan struct{} // has room for as many as may run at a time
}

// slot is a place among the runs of this process. A caller that takes one defers release,
// which gives it back unless a run was launched in it; so it is free again whatever happens
// before.
type slot struct {
	of     *places
	who    holdfast.Principal
	agents *agents.Set // whose user the run is; nil if there is no run yet
	kept   bool
}

// take takes a place for a new run. The error says why there is none: all are in use,
// or too many by this tenant or user.
func (p *places) take(who holdfast.Principal) (*slot, error) {
	if err := p.limits.TakeRun(who); err != nil {
		return nil, err
	}
	select {
	case p.taken <- struct{}{}:
		return &slot{of: p, who: who}, nil
	default:
		p.limits.FreeRun(who)
		return nil, errTooManyRuns(cap(p.taken))
	}
}

// hold is take for a run that has begun elsewhere. It is not refused because of the
// limits of tenants and users, which are for new runs.
func (p *places) hold(who holdfast.Principal) (*slot, error) {
	select {
	case p.taken <- struct{}{}:
		p.limits.HoldRun(who)
		return &slot{of: p, who: who}, nil
	default:
		return nil, errTooManyRuns(cap(p.taken))
	}
}

// room returns the error that take would return, so that nothing needs to be read for a
// run that cannot begin.
func (p *places) room(who holdfast.Principal) error {
	place, err := p.take(who)
	place.release()
	return err
}

// release gives the place back, unless a run has it. s may be nil.
func (s *slot) release() {
	if s != nil && !s.kept {
		s.of.free(s.who, s.agents)
	}
}

// free gives a run's place to another one. It needs its agents no more.
func (p *places) free(who holdfast.Principal, agents *agents.Set) {
	p.limits.FreeRun(who)
	<-p.taken
	agents.Drop()
}
