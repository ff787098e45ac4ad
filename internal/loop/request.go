package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/observe"
)

// The request to the model, in an order that serves the provider's cache: the tools by their
// names, the instructions, the history, and last the parts that may differ next time. All of
// it comes from the agent, from the record of the run and from the stored history, so a
// process that continues the run asks the same, byte for byte.

// request returns what the model is asked.
func (a *completion) request() *holdfast.ModelRequest {
	r := a.r
	tools := a.offered()
	a.chosen = choiceOf(r.rec, r.st.Iteration, tools)
	req := &holdfast.ModelRequest{
		Thread:         r.key.Thread,
		Run:            r.rec.ID,
		Iteration:      r.st.Iteration,
		Attempt:        a.attempt,
		Model:          r.models[r.model].Name,
		Overflows:      a.overflows,
		Messages:       r.messages[:len(r.messages):len(r.messages)],
		Tools:          tools,
		ToolChoice:     a.chosen.Mode,
		ChosenTool:     a.chosen.Tool,
		ForwardedProps: r.rec.ForwardedProps,
	}
	if r.agent.Instructions != "" {
		req.Instructions = append(req.Instructions, r.agent.Instructions)
	}
	req.State, req.StateTooLarge = r.agent.Shared.Shown(r.shared.now().State)
	instruct(req, r.rec, &r.agent.Client, r.st.Changing())
	if f := r.agent.Form; f != nil {
		req.Output = &f.Output
	}
	wrong := after(r.st.Misfit)
	req.Messages, req.Tail = append(req.Messages, wrong...), req.Tail+len(wrong)
	return req
}

// offered returns the tools of the agent and of the run's frontend. While the run lasts they
// do not change, unless an open call had to wait for its tool.
func (a *completion) offered() []holdfast.ToolSpec {
	r := a.r
	own := r.tools.Load().Specs
	list := own
	for _, t := range r.rec.Tools {
		// A frontend's tool never replaces a server's tool of the same name.
		if _, ours := r.tools.Find(t.Name); !ours {
			list = append(list, holdfast.ToolSpec{
				Name:        t.Name,
				Description: t.Description,
				Parameters:  t.Parameters,
				Metadata:    t.Metadata,
			})
		}
	}
	if len(list) > len(own) {
		agents.SortSpecs(list) // appending has made a copy
	}
	return list
}

// prompted notes what was sent to the model, and reports how much of it was in the request
// before. The mark is stored with the next commit; if the process dies before that, the
// next request is compared with an earlier one, which it repeats too.
func (a *completion) prompted() {
	if a.prompt == nil {
		return // an agent's prompt is its own
	}
	r, sent := a.r, a.prompt.Last()
	if sent == nil {
		return // the model is not one of ours, or was not reached
	}
	r.st.Prompt = sent.Mark
	p := observe.Prompt{
		Provider: sent.Provider,
		Model:    sent.Model,
		Bytes:    sent.Size,
		Repeated: sent.Repeated,
		Cut:      cutOf(sent),
	}
	r.host.Config.Observer.PromptSent(r.place(), p)
	if p.Cut != observe.CutNone && p.Cut != observe.CutFirst {
		r.log.Debug("the prompt does not begin as the one before",
			"thread", r.key.Thread, "run", r.rec.ID, "iteration", r.st.Iteration, "provider", p.Provider,
			"model", p.Model, "cut", p.Cut, "bytes", p.Bytes, "repeated", p.Repeated)
	}
}
