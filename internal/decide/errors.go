package decide

import (
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The errors of Decide and Compare. Each says what to do next, and names the ids that are
// needed to do it.

// howToChat ends the hints that name the policy chat.
const howToChat = "start the server with --chat, or give it to the agent (policy: { chat: true }) or to one request " +
	"(forwardedProps.holdfast.chat)."

func errWrongAgent(s Situation, asked string) *holdfast.Error {
	return holdfast.Errorf(codes.WrongAgent,
		"This thread has an unfinished run of agent %q; it cannot go on with agent %q.", s.Agent, asked).
		WithHint("Use agent %q for this thread, or start a new thread.", s.Agent).
		With("runId", s.Run).With("agent", s.Agent)
}

func errRunIDReused(run string) *holdfast.Error {
	return holdfast.Errorf(codes.RunIDReused, "Run %q exists in this thread and was started with other input.", run).
		WithHint(`Send a new runId. To watch run %q, send it again with the same input, or with "messages": [].`, run).
		With("runId", run)
}

func errNothingToRun() *holdfast.Error {
	return holdfast.Errorf(codes.NothingToRun,
		"No messages provided and thread has no existing history or checkpoint.").
		WithHint("Send at least one user message; the last message must be from the user or a tool.")
}

func errRunInProgress(s Situation) *holdfast.Error {
	return holdfast.Errorf(codes.RunInProgress,
		"Run %q is in progress on thread %q, at iteration %d; new messages cannot be added to it.", s.Run, s.Thread,
		s.Iteration).
		WithHint(`Wait for it to end; or attach to it with an empty-messages POST; or cancel it; or set `+
			`forwardedProps.holdfast.onBusy to "cancel_and_run". Pages of frontends want the policy chat, by which `+
			`new messages, edits and regenerations end the run: `+howToChat).
		With("runId", s.Run).With("iteration", s.Iteration)
}

func errAlreadyAnswered(s Situation) *holdfast.Error {
	return holdfast.Errorf(codes.InterruptAlreadyAnswered,
		"An interrupt named in resume has been answered before, with another answer, or is not open.").
		WithHint(`The first answer counts. To see what came of it, %s.`, thread.HintEmptyPost).
		With("runId", s.Run)
}

// errInterrupted names the open questions.
func errInterrupted(s Situation) *holdfast.Error {
	ids := make([]string, len(s.Interrupts))
	for i, in := range s.Interrupts {
		ids[i] = in.ID
	}
	return holdfast.Errorf(codes.Interrupted,
		"This thread waits for an answer; new messages cannot be added before every open question is answered.").
		WithHint(`Answer all of them in "resume" (you may send the messages along); or set `+
			`forwardedProps.holdfast.onInterrupted to "decline".`).
		With("runId", s.Run).With("interrupts", ids)
}

// errAnswersMissing names the open questions that have no answer, and the entries that answer none.
func errAnswersMissing(s Situation, resume, answers []agui.ResumeEntry) *holdfast.Error {
	open, given, missing := []string{}, []string{}, []string{}
	for _, in := range s.Interrupts {
		open = append(open, in.ID)
		if slices.ContainsFunc(answers, func(a agui.ResumeEntry) bool { return a.InterruptID == in.ID }) {
			given = append(given, in.ID)
		} else {
			missing = append(missing, in.ID)
		}
	}
	text := fmt.Sprintf("The request answers %d of the %d open questions of this thread; all of them "+
		"must be answered at once.", len(given), len(open))
	unknown := unknownIn(s, resume)
	if len(unknown) > 0 {
		text += fmt.Sprintf(" The thread has not asked %q.", unknown)
	}
	e := holdfast.Errorf(codes.AnswersMissing, "%s", text).
		WithHint(`Nothing was accepted or stored, and all questions stay open. Send "resume" again with an entry for `+
			`each of them, also those in "missing"; the status "cancelled" declines one.`).
		With("runId", s.Run).
		With("interrupts", open).
		With("answered", given).
		With("missing", missing).
		With("accepted", []string{})
	if len(unknown) > 0 {
		e = e.With("unknown", unknown)
	}
	return e
}

// errCallPending names the calls that wait for somebody outside.
func errCallPending(s Situation) *holdfast.Error {
	return holdfast.Errorf(codes.CallPending,
		"This thread waits for the result of a call that is finished from outside; new messages cannot be "+
			"added before it has come.").
		WithHint("Send the message again when the call is finished or has expired (GET /threads/{thread} shows "+
			"outsideCalls); or rewind the thread to a message before the call; or begin another thread. The receiver "+
			"of the call can finish it with an error: POST /threads/{thread}/calls/{call}/result.").
		With("runId", s.Run).With("toolCallIds", waiting(s))
}

// errNotByResume is for a client that answers an outside call like a question.
func errNotByResume(s Situation, call string) *holdfast.Error {
	return holdfast.Errorf(codes.CallPending, "Call %q is finished from outside; resume does not answer it.", call).
		WithHint("The receiver of the call sends the result, to the call's one-time URL or to POST "+
			"/threads/{thread}/calls/{call}/result. To see where the thread stands, leave the entry out.").
		With("runId", s.Run).With("toolCallIds", []string{call})
}

func errInterruptExpired(s Situation) *holdfast.Error {
	return holdfast.Errorf(codes.InterruptExpired,
		"An interrupt named in resume has expired; it can only be cancelled.").
		WithHint(`Send its entry in "resume" with "status": "cancelled".`).
		With("runId", s.Run)
}

func errInvalidAnswer(s Situation, violations []Violation) *holdfast.Error {
	return holdfast.Errorf(codes.InvalidAnswer, "An answer in resume is not what its question asks for: %s",
		violations[0].Message).
		WithHint("Send the answers again with payloads that fit each question's responseSchema; the questions stay "+
			"open, and nothing was stored.").
		With("runId", s.Run).
		With("violations", violations)
}

func errMidExecution(s Situation) *holdfast.Error {
	return holdfast.Errorf(codes.MidExecution,
		"Cannot add new messages when resuming mid-execution. Thread %q is at iteration %d.", s.Thread, s.Iteration).
		WithHint(`To resume execution, %s. To give the unfinished work up and go on with your message, set `+
			`forwardedProps.holdfast.onUnfinished to "abandon": finished results are kept.`, thread.HintEmptyPost).
		With("runId", s.Run).With("iteration", s.Iteration)
}

// errHistoryDiverged names the last common message and the newest 50 of those that the
// client lacks.
func errHistoryDiverged(lastCommon string, lacking []string) *holdfast.Error {
	e := holdfast.Errorf(codes.HistoryDiverged, "The messages sent are not a continuation of this thread's history.").
		WithHint("Send only what is new, or read the history with GET /threads/{thread}/messages and continue it; to "+
			"branch off from the last common message, set forwardedProps.holdfast.branch to true. Pages of frontends "+
			"want the policy chat, by which edits and regenerations branch off: "+howToChat).
		With("lastCommonMessageId", lastCommon)
	const most = 50
	if len(lacking) > most {
		lacking = lacking[len(lacking)-most:]
	}
	return e.With("missingMessageIds", lacking)
}

func errUnknownToolCall(call string) *holdfast.Error {
	return holdfast.Errorf(codes.UnknownToolCall,
		"A tool message answers the call %q, which no assistant message before it makes.", call).
		WithHint("Send the assistant message with this call before its result, or leave the result out.").
		With("toolCallId", call)
}

func errRoleChanged(id, was, is string) *holdfast.Error {
	return holdfast.Errorf(codes.InvalidInput, "Message %q has the role %q in this thread, but was sent as %q.", id,
		was, is).
		WithHint("Give a new message a new id.").With("messageId", id)
}

// errNothingTaken is for a history of which the agent takes nothing that could be run.
func errNothingTaken(policy string) *holdfast.Error {
	return holdfast.Errorf(codes.NothingToRun,
		"This agent takes no history from clients (import: %s), and without it there is nothing to run.", policy).
		WithHint("Send a user message as the last one.")
}

// errMedia never repeats the reference, which may hold a secret.
func errMedia(message string, part int, kind holdfast.PartType, r *refusal) *holdfast.Error {
	return holdfast.Errorf(codes.MediaRefused, "The %s of message %q was sent %s.", kind, message, r.why).
		WithHint("%s", r.instead).With("messageId", message).With("part", part)
}

// errNothingBefore is for a client that leaves out what precedes a message, in a thread that
// does not have that.
func errNothingBefore(since string) *holdfast.Error {
	return holdfast.Errorf(codes.HistoryDiverged, "The thread does not have message %q, nor what precedes it.", since).
		WithHint("Send all messages again, without forwardedProps.holdfast.since.").
		With("lastCommonMessageId", "")
}
