package loop

import (
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

// The errors of decide. Each says what to do next, and names the ids that are
// needed to do it.

const hintEmptyPost = `POST the same threadId with "messages": [] and a new runId`

func attachPath(thread string) string { return "GET /threads/" + thread + "/stream" }

func errWrongAgent(s situation, asked string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeWrongAgent,
		"This thread has an unfinished run of agent %q; it cannot go on with agent %q.", s.Agent, asked).
		WithHint("Use agent %q for this thread, or start a new thread.", s.Agent).
		With("runId", s.Run).With("agent", s.Agent)
}

func errRunIDReused(run string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeRunIDReused,
		"Run %q exists in this thread and was started with other input.", run).
		WithHint(`Send a new runId. To watch run %q, send it again with the same input, or with "messages": [].`, run).
		With("runId", run)
}

func errNothingToRun() *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNothingToRun,
		"No messages provided and thread has no existing history or checkpoint.").
		WithHint("Send at least one user message; the last message must be from the user or a tool.")
}

func errRunInProgress(s situation) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeRunInProgress,
		"Run %q is in progress on this thread, at iteration %d; new messages cannot be added to it.", s.Run, s.Iteration).
		WithHint(`Wait for it to end; or attach to it with an empty-messages POST; or cancel it; or set forwardedProps.holdfast.onBusy to "cancel_and_run".`).
		With("runId", s.Run).With("iteration", s.Iteration)
}

func errAlreadyAnswered(s situation) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeInterruptAlreadyAnswered,
		"An interrupt named in resume has been answered before, with another answer, or is not open.").
		WithHint(`The first answer counts. To see what came of it, %s.`, hintEmptyPost).
		With("runId", s.Run)
}

func errInterrupted(s situation) *holdfast.Error {
	ids := make([]string, len(s.Interrupts))
	for i, in := range s.Interrupts {
		ids[i] = in.ID
	}
	return holdfast.Errorf(holdfast.CodeInterrupted,
		"This thread waits for an answer; new messages cannot be added before every open question is answered.").
		WithHint(`Answer all of them in "resume" (you may send the messages along); or set forwardedProps.holdfast.onInterrupted to "decline".`).
		With("runId", s.Run).With("interrupts", ids)
}

func errInterruptExpired(s situation) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeInterruptExpired,
		"An interrupt named in resume has expired; it can only be cancelled.").
		WithHint(`Send its entry in "resume" with "status": "cancelled".`).
		With("runId", s.Run)
}

func errMidExecution(s situation) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeMidExecution,
		"Cannot add new messages when resuming mid-execution. This thread is at iteration %d.", s.Iteration).
		WithHint(`To resume execution, %s. To give the unfinished work up and go on with your message, set forwardedProps.holdfast.onUnfinished to "abandon": finished results are kept.`, hintEmptyPost).
		With("runId", s.Run).With("iteration", s.Iteration)
}

func errHistoryDiverged(lastCommon string, lacking []string) *holdfast.Error {
	e := holdfast.Errorf(holdfast.CodeHistoryDiverged,
		"The messages sent are not a continuation of this thread's history.").
		WithHint("Send only what is new, or read the history with GET /threads/{thread}/messages and continue it; to branch off from the last common message, set forwardedProps.holdfast.branch to true.").
		With("lastCommonMessageId", lastCommon)
	const most = 50
	if len(lacking) > most {
		lacking = lacking[len(lacking)-most:]
	}
	return e.With("missingMessageIds", lacking)
}

func errUnknownToolCall(call string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeUnknownToolCall,
		"A tool message answers the call %q, which no assistant message before it makes.", call).
		WithHint("Send the assistant message with this call before its result, or leave the result out.").
		With("toolCallId", call)
}

func errRoleChanged(id, was, is string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeInvalidInput,
		"Message %q has the role %q in this thread, but was sent as %q.", id, was, is).
		WithHint("Give a new message a new id.").With("messageId", id)
}

// errThreadNotFound is the same for a thread that does not exist and one that
// is somebody else's.
func errThreadNotFound(thread string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNotFound, "There is no thread %q.", thread).
		WithHint("GET /threads lists yours.")
}

func errRunNotFound(thread, run string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNotFound, "There is no run %q in thread %q.", run, thread).
		WithHint("GET /threads/%s names its last run.", thread)
}

func errAgentNotFound(name string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeAgentNotFound, "There is no agent %q.", name).
		WithHint("Leave the name out (POST /runs) to use the default agent.")
}

func errTooManyRuns(limit int) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeTooManyRuns, "All %d runs that this server may run at a time are in use.", limit).
		WithHint("Try again after the time in the Retry-After header; operators raise the limit with --max-runs.")
}

func errShuttingDown() *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeShuttingDown, "This server is shutting down; nothing new is started.").
		WithHint("Try again; another replica, or this one after its restart, will serve you.")
}

func errTooNew(err error) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeVersionTooNew, "This thread was written by a newer version of the server; it was left untouched.").
		WithHint("Upgrade this server.").Wrap(err)
}

func errCheckpointInvalid(err error) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointInvalid, "This thread's stored state has a negative counter, so it is not gone on with; it was left untouched.").
		WithHint("Operators look at it with: holdfast inspect.").Wrap(err)
}

func errCheckpointUnreadable(err error) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointUnreadable, "A part of this thread's stored state cannot be read; it was left untouched.").
		WithHint("Operators look at it with: holdfast check.").Wrap(err)
}

// errStale is about a history that is not the one the head was written for.
func errStale(has, expects int) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointStale,
		"Checkpoint is stale. Conversation has %d messages but checkpoint expects %d.", has, expects).
		WithHint("To go on with the history as it is, set forwardedProps.holdfast.allowStale to true.").
		With("actual", has).With("expected", expects)
}

func errCheckpointNotFound(thread, id string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNotFound, "There is no checkpoint %q in thread %q.", id, thread).
		WithHint("GET /threads/{thread}/checkpoints lists those that are kept.").With("checkpointId", id)
}

func errHistoryNotKept() *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeHistoryNotKept, "This server keeps only the latest checkpoint of a thread.").
		WithHint("Operators keep more with --retention=full. A rewind or a fork by messageId works all the same.")
}

func errETag(expected, actual string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointConflict,
		"Concurrent modification detected. Expected ETag: %s, Actual ETag: %s.", expected, actual).
		WithHint("Read the thread again; nothing was changed.").With("expected", expected).With("actual", actual)
}

func errKeptChanging() *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointConflict, "The thread kept changing while this request was decided.").
		WithHint("Try again.")
}

// errStillRunning is about what cannot be done to a thread that runs.
func errStillRunning(t *thread) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeRunInProgress, "Run %q is in progress on this thread.", t.st.Run).
		WithHint("Wait for its end, or cancel it: POST /threads/{thread}/runs/{run}/cancel.").
		With("runId", t.st.Run).With("threadId", t.key.Thread)
}

// errStreamCut is a notice, not a record: the run goes on.
func errStreamCut(thread, run string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeStreamCut,
		"This connection ends before its run does; the run goes on. Attach again with %s, or with GET /threads/%s/runs/%s/events and the id of the last event received.",
		attachPath(thread), thread, run)
}

func errCutOff(iteration int) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCutOff,
		"The server that ran this run died at iteration %d. Finished results are kept. To go on, %s.", iteration, hintEmptyPost)
}

func errGaveUp(claims int) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeRecoveryGaveUp,
		"The run was taken over %d times without progress and is given up. Finished results are kept. To try once more, %s.", claims, hintEmptyPost)
}

func storeError(err error) error {
	return holdfast.Errorf(holdfast.CodeStoreUnavailable, "The store cannot be reached at the moment.").
		WithHint("Try again; nothing was started.").Wrap(fmt.Errorf("store: %w", err))
}
