package http

import (
	"net/http"
	"slices"

	"github.com/holdfast-agents/holdfast/codes"
)

// The table of routes. The router and the OpenAPI document are both made from it.

// New returns the handler of all routes.
func New(c Config) http.Handler { return newRouter(c, routes) }

// routes are all routes. It is read only.
var routes = slices.Concat(ownRoutes, inspectRoutes, operateRoutes, copilotKitRoutes)

// ownRoutes are those of Holdfast's own API.
var ownRoutes = []route{
	{
		method: "POST", path: routeRuns, do: (*handler).postRun, id: "postRun", body: "RunAgentInput", params: resumeParams,
		summary: "Start, resume, attach to or hydrate a run of the default agent.", answers: runAnswers, errors: runErrors,
	},
	{
		method: "POST", path: routeAgentRuns, do: (*handler).postRun, id: "postAgentRun", body: "RunAgentInput", params: resumeParams,
		summary: "Start, resume, attach to or hydrate a run of the named agent.", answers: runAnswers, errors: runErrors,
	},
	{
		method: "GET", path: "/threads/{thread}/runs/{run}/events", do: (*handler).getEvents, id: "getEvents",
		summary: "Replay a run after a cursor and follow it.", params: []string{"LastEventID", "after", "protocolVersion", "HoldfastResume", "HoldfastCursors"},
		answers: []answer{eventStream, nothingMissing},
		errors:  slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput, codes.LimitExceeded}),
	},
	{
		method: "GET", path: "/threads/{thread}/stream", do: (*handler).getStream, id: "attach",
		summary: "Attach a client that knows nothing: snapshots, reopened items, then live events. With a cursor in the current run: its rest.",
		params:  []string{"LastEventID", "after", "protocolVersion", "HoldfastResume", "HoldfastCursors"},
		answers: []answer{eventStream},
		errors:  slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput, codes.LimitExceeded}),
	},
	{
		method: "POST", path: "/threads/{thread}/runs/{run}/cancel", do: (*handler).postCancel, id: "cancelRun",
		summary: "Ask a run to end. Cancelling twice changes nothing.",
		answers: []answer{
			{http.StatusOK, "The run has ended.", typeJSON, "ThreadInfo"},
			{http.StatusAccepted, "The run is ending.", typeJSON, "ThreadInfo"},
		},
		errors: slices.Concat(readErrors, []string{codes.InvalidInput}),
	},
	{
		method: "POST", path: "/threads/{thread}/calls/{call}/result", do: postResult, id: "finishCall", body: "CallResult",
		summary: "Give a call that is finished from outside its result. For services: see docs/tools.md.",
		answers: []answer{{http.StatusOK, "The result was taken; the same result again gets the same answer.", typeJSON, "FinishedCall"}},
		errors:  finishErrors,
	},
	{
		method: "POST", path: "/calls", do: postCall, open: true, id: "finishCallByURL", body: "CallResult", params: []string{"token"},
		summary: "The same by the call's one-time URL, without a key.",
		answers: []answer{{http.StatusOK, "The result was taken; the same result again gets the same answer.", typeJSON, "FinishedCall"}},
		errors:  finishErrors,
	},
	{
		method: "GET", path: "/threads", do: (*handler).listThreads, id: "listThreads", params: []string{"limit", "before", "user"},
		summary: "List your threads, most recently active first.",
		answers: []answer{{http.StatusOK, "The threads.", typeJSON, "ThreadList"}},
		errors:  listErrors,
	},
	{
		method: "GET", path: "/threads/{thread}", do: (*handler).getThread, id: "getThread",
		summary: "Status, run, iteration, open questions, cursor, size; the ETag header has its etag.",
		answers: []answer{{http.StatusOK, "The thread.", typeJSON, "ThreadInfo"}}, errors: readErrors,
	},
	{
		method: "PATCH", path: "/threads/{thread}", do: (*handler).patchThread, id: "describeThread", params: []string{"IfMatch"},
		summary: "Give a thread another title, hide it, or show it again.", body: "Description",
		answers: []answer{{http.StatusOK, "The thread.", typeJSON, "ThreadInfo"}}, errors: changeErrors,
	},
	{
		method: "DELETE", path: "/threads/{thread}", do: (*handler).deleteThread, id: "deleteThread", params: []string{"IfMatch", "children"},
		summary: "Delete a thread that is not running, with everything stored about it.",
		answers: []answer{{http.StatusOK, "How many threads were deleted.", typeJSON, "Deleted"}},
		errors:  slices.Concat(readErrors, []string{codes.InvalidInput, codes.RunInProgress, codes.CheckpointConflict}),
	},
	{
		method: "GET", path: "/threads/{thread}/messages", do: (*handler).getMessages, id: "getMessages",
		summary: "The history, as AG-UI messages.",
		answers: []answer{{http.StatusOK, "The messages.", typeJSON, "MessageList"}}, errors: readErrors,
	},
	{
		method: "GET", path: "/threads/{thread}/state", do: (*handler).getState, id: "getState",
		summary: "The shared state, and the states of the middleware.",
		answers: []answer{{http.StatusOK, "The states.", typeJSON, "ThreadState"}}, errors: readErrors,
	},
	{
		method: "GET", path: "/threads/{thread}/runs", do: (*handler).listRuns, id: "listRuns", params: []string{"limit", "beforeRun"},
		summary: "The runs of a thread, newest first.",
		answers: []answer{{http.StatusOK, "The runs.", typeJSON, "RunList"}}, errors: slices.Concat(readErrors, []string{codes.InvalidInput}),
	},
	{
		method: "GET", path: "/threads/{thread}/children", do: (*handler).getChildren, id: "listChildren",
		summary: "Your threads that were forked from this one.",
		answers: []answer{{http.StatusOK, "The threads.", typeJSON, "ThreadList"}}, errors: readErrors,
	},
	{
		method: "GET", path: "/threads/{thread}/checkpoints", do: (*handler).listCheckpoints, id: "listCheckpoints",
		params: []string{"limit", "beforeCheckpoint"}, summary: "The checkpoints of a thread, newest first.",
		answers: []answer{{http.StatusOK, "The checkpoints.", typeJSON, "CheckpointList"}},
		errors:  slices.Concat(readErrors, []string{codes.InvalidInput, codes.HistoryNotKept}),
	},
	{
		method: "GET", path: "/threads/{thread}/checkpoints/{checkpoint}", do: (*handler).getCheckpoint, id: "getCheckpoint",
		summary: "The thread as it was at a checkpoint: messages, shared state, open calls.",
		answers: []answer{{http.StatusOK, "The checkpoint.", typeJSON, "CheckpointDetail"}},
		errors:  slices.Concat(readErrors, []string{codes.HistoryNotKept}),
	},
	{
		method: "POST", path: "/threads/{thread}/checkpoints", do: (*handler).postCheckpoint, id: "markCheckpoint", params: []string{"IfMatch"},
		summary: "Take a checkpoint, also while a run is under way; on a thread that is not running, it may replace the shared state.", body: "Mark", bodyOptional: true,
		answers: []answer{{http.StatusCreated, "The checkpoint.", typeJSON, "Checkpoint"}}, errors: slices.Concat(changeErrors, []string{codes.LimitExceeded}),
	},
	{
		method: "POST", path: "/threads/{thread}/fork", do: (*handler).postFork, id: "forkThread", params: []string{"IfMatch"},
		summary: "Start a new thread where this one stands or stood.", body: "Travel", bodyOptional: true,
		answers: []answer{
			{http.StatusCreated, "The new thread.", typeJSON, "Traveled"},
			{http.StatusOK, "What it would be, with preview.", typeJSON, "Traveled"},
		},
		errors: slices.Concat(changeErrors, []string{codes.HistoryNotKept, codes.LimitExceeded, codes.ThreadExists}),
	},
	{
		method: "POST", path: "/threads/{thread}/rewind", do: (*handler).postRewind, id: "rewindThread", params: []string{"IfMatch"},
		summary: "Take a thread that is not running back to a checkpoint or a message.", body: "Rewind",
		answers: []answer{{http.StatusOK, "Where the thread is now.", typeJSON, "Traveled"}},
		errors:  slices.Concat(changeErrors, []string{codes.HistoryNotKept}),
	},
	{
		method: "POST", path: "/threads/{thread}/prune", do: (*handler).postPrune, id: "pruneThread", params: []string{"IfMatch"}, body: "Prune", bodyOptional: true,
		summary: "Keep the newest checkpoints, and remove what neither they nor the head needs.",
		answers: []answer{{http.StatusOK, "What was removed or, in a dry run, would be.", typeJSON, "Cleaned"}}, errors: changeErrors,
	},
	{
		method: "POST", path: "/maintenance/delete-older-than", do: (*handler).postDeleteOlderThan, id: "deleteOlderThan", body: "DeleteOlderThan",
		summary: "Remove old checkpoints from all your threads (an operator: from all of the tenant's), but never a thread's newest.",
		answers: []answer{{http.StatusOK, "What was removed or, in a dry run, would be.", typeJSON, "Cleaned"}}, errors: cleanErrors,
	},
	{
		method: "POST", path: "/maintenance/delete-inactive", do: (*handler).postDeleteInactive, id: "deleteInactive", body: "DeleteInactive",
		summary: "Delete your idle threads (an operator: the tenant's) that have not been used for a long time.",
		answers: []answer{{http.StatusOK, "What was removed or, in a dry run, would be.", typeJSON, "Cleaned"}}, errors: cleanErrors,
	},
	{
		method: "POST", path: "/maintenance/backup", do: (*handler).postBackup, open: true, id: "backup", body: "Backup",
		summary: "Copy the embedded store to a new directory on the server's machine. For operators: see holdfast backup.",
		answers: []answer{{http.StatusOK, "The copy is complete.", typeJSON, "BackedUp"}},
		errors:  []string{codes.Forbidden, codes.InvalidInput, codes.NotFound, codes.PayloadTooLarge, codes.StoreUnavailable, codes.UnsupportedMediaType},
	},
	{
		method: "GET", path: "/agents", do: (*handler).getAgents, id: "listAgents",
		summary: "List the agents with their tools and capabilities, the default one first.",
		answers: []answer{{http.StatusOK, "The agents.", typeJSON, "AgentList"}}, errors: []string{codes.NotFound},
	},
	{
		method: "GET", path: "/agents/{agent}/capabilities", do: (*handler).getCapabilities, id: "getCapabilities",
		summary: "What the agent can do, as AG-UI capabilities.",
		answers: []answer{{http.StatusOK, "The capabilities.", typeJSON, "Capabilities"}},
		errors:  []string{codes.AgentNotFound, codes.NotFound},
	},
	{
		method: "GET", path: "/healthz", do: (*handler).health, open: true, id: "health", summary: "Whether the process is alive.",
		answers: []answer{{http.StatusOK, "It is.", typeJSON, "Health"}},
	},
	{
		method: "GET", path: "/readyz", do: (*handler).readiness, open: true, id: "ready", summary: "Whether a run could be started.",
		answers: []answer{{http.StatusOK, "It could.", typeJSON, "Health"}},
		errors:  []string{codes.ShuttingDown, codes.StoreUnavailable},
	},
	{
		method: "GET", path: "/metrics", do: (*handler).metrics, open: true, id: "metrics", summary: "Prometheus metrics, if they are on.",
		answers: []answer{{http.StatusOK, "The metrics.", "text/plain", ""}}, errors: []string{codes.NotFound},
	},
	{
		method: "GET", path: "/openapi.json", do: (*handler).openAPI, open: true, id: "openapi", summary: "This document.",
		answers: []answer{{http.StatusOK, "The document.", typeJSON, "Document"}},
	},
	{
		method: "GET", path: "/", do: (*handler).page, open: true, id: "home", summary: "The web UI, if there is one.",
		answers: pageAnswers, errors: []string{codes.NotFound},
	},
	{
		method: "HEAD", path: "/", do: (*handler).page, open: true, id: "headHome", summary: "The web UI's headers.",
		answers: headAnswers, errors: []string{codes.NotFound},
	},
	{
		method: "GET", path: "/ui/*", do: (*handler).page, open: true, id: "page", summary: "A file of the web UI, if there is one.",
		answers: pageAnswers, errors: []string{codes.NotFound},
	},
	{
		method: "HEAD", path: "/ui/*", do: (*handler).page, open: true, id: "headPage", summary: "The headers of a file of the web UI.",
		answers: headAnswers, errors: []string{codes.NotFound},
	},
}

// What several routes share.
var (
	eventStream    = answer{http.StatusOK, "The run's AG-UI events, as Server-Sent Events.", typeSSE, ""}
	nothingMissing = answer{code: http.StatusNoContent, text: "The run has ended, and nothing comes after the cursor."}
	runAnswers     = []answer{eventStream, nothingMissing, {http.StatusOK, "As JSON, if Accept prefers it: the run, once it has ended.", typeJSON, "RunResult"}}
	pageAnswers    = []answer{{http.StatusOK, "The page.", "text/html", ""}}
	headAnswers    = []answer{{code: http.StatusOK, text: "The page is there."}}
	resumeParams   = []string{"LastEventID", "after", "HoldfastResume", "HoldfastCursors", "traceparent"}

	// storedErrors are about stored data.
	storedErrors = []string{
		codes.StoreUnavailable, codes.VersionTooNew, codes.CheckpointInvalid, codes.CheckpointUnreadable,
	}
	listErrors   = slices.Concat(storedErrors, []string{codes.InvalidInput})
	cleanErrors  = slices.Concat(listErrors, []string{codes.PayloadTooLarge, codes.UnsupportedMediaType})
	readErrors   = slices.Concat(storedErrors, []string{codes.NotFound, codes.ShuttingDown})
	changeErrors = slices.Concat(readErrors, []string{
		codes.CheckpointConflict, codes.InvalidInput, codes.PayloadTooLarge, codes.RunInProgress, codes.UnsupportedMediaType,
	})
	finishErrors = slices.Concat(readErrors, []string{
		codes.AgentNotFound, codes.CallAlreadyAnswered, codes.CallClosed, codes.CallExpired, codes.CheckpointConflict,
		codes.InvalidInput, codes.PayloadTooLarge, codes.RunInProgress, codes.UnsupportedMediaType,
	})
	runErrors = slices.Concat(storedErrors, []string{
		codes.NotAcceptable, codes.AgentNotFound, codes.CallPending, codes.CheckpointConflict, codes.CheckpointStale,
		codes.HistoryDiverged, codes.InterruptAlreadyAnswered, codes.InterruptExpired, codes.Interrupted, codes.InvalidAnswer,
		codes.InvalidCursor, codes.InvalidInput, codes.LimitExceeded, codes.SchemaChanged, codes.StateTooNew, codes.MidExecution,
		codes.AnswersMissing, codes.NotFound, codes.NothingToRun, codes.PayloadTooLarge,
		codes.RunIDReused, codes.RunInProgress, codes.ShuttingDown, codes.StreamCut, codes.ThreadTooLarge,
		codes.MediaRefused, codes.TooManyRuns, codes.UnknownToolCall, codes.UnsupportedMediaType, codes.WrongAgent,
	})
)
