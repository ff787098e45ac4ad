package owner

import (
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The errors of who runs a thread, and the results that are reported to the observer. Each
// error says what to do next.

func errTooManyRuns(limit int) *holdfast.Error {
	return holdfast.Errorf(codes.TooManyRuns, "All %d runs that this server may run at a time are in use.", limit).
		WithHint("Try again after the time in the Retry-After header; operators raise the limit with --max-runs.")
}

func errTooManyWaiting(limit int) *holdfast.Error {
	return holdfast.Errorf(codes.TooManyRuns, "%d requests already wait here for runs whose server is silent.", limit).
		WithHint("Try again after the time in the Retry-After header; operators raise the limit with --max-runs.")
}

func errNotAside() *holdfast.Error {
	return holdfast.Errorf(codes.InvalidInput,
		"This route answers only beside a conversation: a request that forces one of its own tools, on a "+
			"thread that there is not yet.").
		WithHint(`Set forwardedProps.toolChoice to {"type": "function", "function": {"name": "one of tools"}}, `+
			`and choose a new threadId.`).
		With("field", "forwardedProps.toolChoice")
}

func errShuttingDown() *holdfast.Error {
	return holdfast.Errorf(codes.ShuttingDown, "This server is shutting down; nothing new is started.").
		WithHint("Try again; another replica, or this one after its restart, will serve you.")
}

func errGaveUp(takeovers int) *holdfast.Error {
	return holdfast.Errorf(codes.RecoveryGaveUp,
		"The run was taken over %d times without progress and is given up. Finished results are "+
			"kept. To try once more, %s.", takeovers, thread.HintEmptyPost)
}

// errRevisionGone is for a run that waited for its revision; agent is what there is of its
// name instead, nil if there is none.
func errRevisionGone(t *thread.Thread, agent *agents.Agent) *holdfast.Error {
	if agent == nil {
		return agents.Gone(t.State.Agent)
	}
	w := t.State.Waiting
	return holdfast.Errorf(codes.RevisionGone,
		"The run waited %s for a server with the revision %s of the agent %q, and there was none.",
		w.Until.Sub(w.Since), w.Revision, agent.Name).
		WithHint("Finished results are kept. To go on with the agent as it is now, %s.", thread.HintEmptyPost)
}

// errWaits is for a change that the owner of a run must make, which has none for now.
func errWaits(id string) *holdfast.Error {
	return holdfast.Errorf(codes.RunInProgress,
		"The run of this thread waits for a server with its agent, and nobody can change the thread meanwhile.").
		WithHint("Try again when the run goes on, or cancel it.").
		With("threadId", id)
}

// takeoverResult names the failure of a takeover for the observer.
func takeoverResult(err error) observe.TakeoverResult {
	var pub *holdfast.Error
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
		return observe.TakeoverLost
	case errors.As(err, &pub) && pub.Code == codes.TooManyRuns:
		return observe.TakeoverRefused
	}
	return observe.TakeoverFailed
}

// errDecideAgain means that the thread has moved, so the decision no longer holds.
var errDecideAgain = errors.New("decide again")

// errUndecodable means that this process owns a run whose messages cannot be decoded.
var errUndecodable = errors.New("a run was taken over whose messages cannot be decoded")

// errPatchesNot says that the server of a run is of a version that cannot change its state for others.
func errPatchesNot(id, run string) *holdfast.Error {
	return holdfast.Errorf(codes.RunInProgress,
		"Run %q is in progress on this thread, on a server of a version that does not change its "+
			"shared state meanwhile.", run).
		WithHint("Wait for the run's end, or for the end of the rolling upgrade. Then read the state, and send the "+
			"patch again if it is not in it.").
		With("runId", run).With("threadId", id)
}
