package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// choiceOf returns which of the tools that are offered the model may call in an iteration. The
// choice that a request of an earlier version has stored was never checked, and counts for
// nothing if it cannot be read.
func choiceOf(rec *thread.Run, iteration int, offered []holdfast.ToolSpec) decide.Choice {
	c, err := decide.ChoiceOf(rec.ForwardedProps)
	if err != nil {
		return decide.Choice{}
	}
	c, _ = c.At(iteration).Among(offered)
	return c
}

// keepTo refuses the calls that the request does not let the model make, and those of a side
// run that a person would have to be asked about.
func keepTo(c decide.Choice, side bool, calls []thread.Call) {
	for i := range calls {
		call, why := &calls[i], ""
		switch {
		case call.Own != nil:
			continue
		case !c.Allows(call.Name):
			why = thread.TextNotChosen
		case side && call.Interrupt != nil:
			why = thread.TextNobodyToAsk
		default:
			continue
		}
		call.Given, call.Interrupt, call.Repeats = &thread.GivenResult{
			Text:   why,
			Failed: true,
			NotRun: true,
		}, nil, false
	}
}
