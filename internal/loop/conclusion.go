package loop

import (
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// conclusion is how a run ends without an error: with an answer, by a cancel, or to wait
// for a person.
type conclusion struct {
	// shown is the outcome in RUN_FINISHED.
	shown *agui.Outcome
	// move makes the state's transition.
	move func(*thread.State) error
}

// succeeded ends a run that has answered. pending are the ids of the calls for which the
// frontend owes results.
func succeeded(pending ...string) *conclusion {
	return &conclusion{
		&agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: pending},
		func(st *thread.State) error { return st.End(holdfast.OutcomeSuccess) },
	}
}

// asks ends a run that waits for a person's answers to the open questions.
func asks(open []agui.Interrupt) *conclusion {
	return &conclusion{&agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: open}, (*thread.State).Wait}
}

// cancelled ends a run that its user cancelled.
func cancelled() *conclusion {
	return &conclusion{
		&agui.Outcome{Type: agui.OutcomeCancelled},
		func(st *thread.State) error { return st.End(holdfast.OutcomeCancelled) },
	}
}

// alone returns how a side run ends: no result is waited for, and nobody can be asked.
func (c *conclusion) alone() (*conclusion, error) {
	if c.shown.Type == agui.OutcomeInterrupt {
		return nil, holdfast.Errorf(codes.MiddlewareFailed,
			"A middleware asks a person before the model may answer, and nobody can be asked in a side run.").
			WithHint("Ask on the thread itself, without forwardedProps.toolChoice.").
			Wrap(errors.New("a middleware asked in a side run"))
	}
	return succeeded(), nil
}
