package owner

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// plan is a thread, a request for it, and what was decided.
type plan struct {
	*thread.Thread
	in    *agui.RunAgentInput
	agent *agents.Agent
	box   *agents.Toolbox // its tools
	req   decide.Request
	d     decide.Decision
	rec   *thread.Run // of the run that begins; nil if none does
	// with is the history that the run begins with, if its log shows that.
	with thread.Path
	// arrival is what has come from outside and is stored with the run; nil for most.
	arrival *loop.OutsideResult
	// forced is the tool that the model must call; empty for most. aside means that a side run
	// is to begin with it, instead of one that is stored.
	forced string
	aside  bool
}

// choose checks which tools the request lets the model call, and finds out whether it asks for
// a side run.
func (p *plan) choose() error {
	if p.d.Do == decide.Reject {
		return nil
	}
	fresh := p.d.Do == decide.Fresh
	if fresh || p.d.Do == decide.Resume || p.d.Do == decide.Keep {
		c, err := decide.ChoiceOf(p.in.ForwardedProps)
		if err != nil {
			return err
		}
		if fresh && c.Mode == decide.ChoiceRequired {
			if _, wrong := c.Among(p.offers()); wrong != nil {
				return wrong
			}
		}
		_, ours := p.box.ByName[c.Tool]
		p.forced, p.aside = c.Tool, fresh && c.Tool != "" && !ours && p.Head == nil
	}
	if p.in.Side && !p.aside {
		return errNotAside()
	}
	return nil
}

// offers returns the tools of the agent and of the request.
func (p *plan) offers() []holdfast.ToolSpec {
	list := p.box.Specs
	for i := range p.in.Tools {
		list = append(list, holdfast.ToolSpec{Name: p.in.Tools[i].Name})
	}
	return list
}

// parameters returns the schemas of the arguments of the calls that wait for a person, by
// the id of the question.
func (p *plan) parameters() map[string]decide.Parameters {
	schemas := map[string]decide.Parameters{}
	for i := range p.State.Calls {
		call := &p.State.Calls[i]
		if !call.Waits() {
			continue
		}
		for _, t := range p.in.Tools {
			if t.Name == call.Name && call.Frontend {
				schemas[call.Interrupt.ID] = decide.Parameters{Tool: t.Name, Schema: t.Parameters}
			}
		}
		if spec := p.box.Spec(call.Name); spec.Name != "" {
			schemas[call.Interrupt.ID] = decide.Parameters{Tool: spec.Name, Schema: spec.Parameters}
		}
	}
	return schemas
}

// request returns what decide needs to know about the input.
func (p *plan) request(agent string, v decide.Verdicts) (decide.Request, error) {
	pol, err := decide.PolicyOf(p.agent.Agent, p.in.Chat, p.in.ForwardedProps)
	if err != nil {
		return decide.Request{}, err
	}
	req := decide.Request{
		Agent:    agent,
		RunID:    p.in.RunID,
		Hash:     p.in.Hash(),
		Policy:   pol,
		Resume:   p.in.Resume,
		Verdicts: v,
	}
	var pending []string
	if p.State != nil {
		pending = p.State.PendingFrontend()
	}
	req.Compared = decide.Compare(p.History, pending, p.in.Messages, pol.Branch, pol.Whole, pol.Since)
	req.Compared.Admit(&p.agent.Client)
	return req, nil
}
