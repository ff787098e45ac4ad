package decide

import (
	"cmp"

	"github.com/holdfast-agents/holdfast"
)

// Chat returns the policy for a request from a chat frontend: what neither the agent nor
// the request has chosen is chosen so that whatever a person does next in a chat is done.
// This is the one place that says what the frontends' own routes choose.
func (p Policy) Chat() Policy {
	p.OnBusy = cmp.Or(p.OnBusy, holdfast.PolicyCancelAndRun)
	p.OnInterrupted = cmp.Or(p.OnInterrupted, holdfast.PolicyDecline)
	p.OnUnfinished = cmp.Or(p.OnUnfinished, holdfast.PolicyAbandon)
	p.Branch = true
	return p
}
