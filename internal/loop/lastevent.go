package loop

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// lastEvent returns the event with which the last run of a thread ended, with its result.
func lastEvent(t *thread.Thread, rec *thread.Run, result json.RawMessage) agui.Event {
	if t.State.Status() == threads.StatusStopped {
		return t.State.Failure()
	}
	outcome := &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: t.State.PendingFrontend()}
	if open := t.State.Interrupts(); len(open) > 0 {
		outcome = &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: open}
	} else if t.State.Outcome() == holdfast.OutcomeCancelled {
		outcome = &agui.Outcome{Type: agui.OutcomeCancelled}
	}
	if outcome.Type != agui.OutcomeSuccess || len(outcome.PendingToolCallIDs) > 0 {
		result = nil
	}
	ev := agui.RunFinished{ThreadID: t.Key.Thread, RunID: rec.ID, Result: result, Outcome: outcome}
	ev.Metadata = outsideMetadata(t.State)
	return ev
}
