package http

import (
	"net/http"
	"slices"

	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// CopilotKit's paths, which its frontend prescribes: they are kept apart from the server's
// own, so that neither table has to be read for the other.

// routes are those that CopilotKit's frontend expects of a runtime.
func (k *copilotKit) routes() []route {
	return slices.Concat(k.infoRoutes(), k.runRoutes())
}

// infoRoutes are its envelope for all requests, and what it asks for first.
func (k *copilotKit) infoRoutes() []route {
	return []route{
		{
			method:    "POST",
			path:      routeCopilotKit,
			do:        k.postCall,
			noIfMatch: runNeedsNoETag,
			asks:      true,
			id:        "copilotKit",
			body:      "CopilotKitCall",
			params:    resumeParams,
			summary: "The requests of CopilotKit's frontend, in its envelope: info, agent/run, " +
				"agent/connect, agent/stop.",
			answers: []answer{
				eventStream,
				nothingMissing,
				{
					http.StatusOK,
					"As JSON: the answer of the route that the method stands for.",
					typeJSON,
					"CopilotKitAnswer",
				},
			},
			errors: runErrors,
		},
		{
			method:  "GET",
			path:    "/copilotkit/info",
			do:      k.getInfo,
			asks:    true,
			id:      "copilotKitInfo",
			summary: "The agents and the abilities of this server, as CopilotKit's frontend asks for them.",
			answers: []answer{{http.StatusOK, "CopilotKit's runtime info.", typeJSON, "CopilotKitInfo"}},
			errors:  []string{codes.NotFound},
		},
	}
}

// runRoutes are those that run agents.
func (k *copilotKit) runRoutes() []route {
	return []route{
		{
			method:    "POST",
			path:      routeCopilotKitRun,
			do:        k.postRun,
			noIfMatch: runNeedsNoETag,
			asks:      true,
			id:        "copilotKitRun",
			body:      "RunAgentInput",
			params:    resumeParams,
			summary:   "POST /agents/{agent}/runs with the choices that suit a chat.",
			answers:   runAnswers,
			errors:    runErrors,
		},
		{
			method:    "POST",
			path:      routeCopilotKitSuggest,
			do:        k.postSuggest,
			noIfMatch: runNeedsNoETag,
			asks:      true,
			id:        "copilotKitSuggest",
			body:      "RunAgentInput",
			summary: "Ask the model what the person could say next, beside the conversation: a side run, " +
				"which is stored nowhere.",
			answers: runAnswers,
			errors:  runErrors,
		},
		{
			method:    "POST",
			path:      "/copilotkit/agent/{agent}/connect",
			do:        k.postConnect,
			noIfMatch: connectNeedsNoETag,
			action:    access.Read,
			id:        "copilotKitConnect",
			body:      "RunAgentInput",
			params:    resumeParams,
			summary: "Attach a page to a thread: what it holds, then live events. Nothing is started; an unknown " +
				"thread has an empty stream.",
			answers: []answer{eventStream},
			errors: slices.Concat(readErrors, []string{
				codes.AgentNotFound,
				codes.InvalidCursor,
				codes.InvalidInput,
				codes.LimitExceeded,
				codes.PayloadTooLarge,
			}),
		},
		{
			method:       "POST",
			path:         "/copilotkit/agent/{agent}/stop/{thread}",
			do:           k.postStop,
			noIfMatch:    cancelNeedsNoETag,
			action:       access.Read,
			id:           "copilotKitStop",
			body:         "CopilotKitStop",
			bodyOptional: true,
			summary:      "Cancel the current run of a thread.",
			answers:      []answer{{http.StatusOK, "Whether there was one.", typeJSON, "CopilotKitStopped"}},
			errors: slices.Concat(readErrors,
				[]string{codes.AgentNotFound, codes.InvalidInput, codes.PayloadTooLarge}),
		},
	}
}

// routes are those behind its list of threads and its inspector.
func (k *copilotKitThreads) routes() []route {
	return slices.Concat(k.listRoutes(), k.inspectRoutes())
}

// listRoutes are those of the list: they show threads, and change or delete one.
func (k *copilotKitThreads) listRoutes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/copilotkit/threads",
			do:      k.listThreads,
			action:  access.Read,
			id:      "copilotKitThreads",
			params:  []string{"copilotKitAgentID", "includeArchived", "limit", "cursor"},
			summary: "List your threads in CopilotKit's form.",
			answers: []answer{
				{http.StatusOK, "A page of threads, most recently active first.", typeJSON, "CopilotKitThreadList"},
			},
			errors: slices.Concat(listErrors, []string{codes.AgentNotFound}),
		},
		{
			method:  "PATCH",
			path:    "/copilotkit/threads/{thread}",
			do:      k.patchThread,
			action:  access.Change,
			id:      "copilotKitPatchThread",
			params:  []string{"IfMatch"},
			body:    "CopilotKitChange",
			summary: "Give a thread another name, hide it, or show it again.",
			answers: []answer{{http.StatusOK, "The thread.", typeJSON, "CopilotKitThread"}},
			errors:  changeErrors,
		},
		{
			method:       "DELETE",
			path:         "/copilotkit/threads/{thread}",
			do:           k.deleteThread,
			action:       access.Delete,
			id:           "copilotKitDeleteThread",
			params:       []string{"IfMatch"},
			body:         "CopilotKitAgentID",
			bodyOptional: true,
			summary:      "Delete a thread that is not running, with everything stored about it.",
			answers:      []answer{{http.StatusOK, "It is gone.", typeJSON, "CopilotKitDone"}},
			errors:       changeErrors,
		},
		{
			method:       "POST",
			path:         "/copilotkit/threads/{thread}/archive",
			do:           k.postArchive,
			action:       access.Change,
			id:           "copilotKitArchiveThread",
			params:       []string{"IfMatch"},
			body:         "CopilotKitAgentID",
			bodyOptional: true,
			summary:      "Hide a thread.",
			answers:      []answer{{http.StatusOK, "It is hidden.", typeJSON, "CopilotKitDone"}},
			errors:       changeErrors,
		},
	}
}

// inspectRoutes are those of the inspector.
func (k *copilotKitThreads) inspectRoutes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/copilotkit/threads/{thread}/messages",
			do:      k.getMessages,
			action:  access.Read,
			id:      "copilotKitMessages",
			summary: "The history in the form of CopilotKit's inspector.",
			answers: []answer{{http.StatusOK, "The messages.", typeJSON, "CopilotKitMessageList"}},
			errors:  readErrors,
		},
		{
			method:  "GET",
			path:    "/copilotkit/threads/{thread}/events",
			do:      k.getEvents,
			action:  access.Read,
			id:      "copilotKitEvents",
			summary: "The events of the newest 50 runs that have ended, for CopilotKit's inspector.",
			answers: []answer{{http.StatusOK, "The events, oldest first.", typeJSON, "CopilotKitEventList"}},
			errors:  readErrors,
		},
		{
			method:  "GET",
			path:    "/copilotkit/threads/{thread}/state",
			do:      k.getState,
			action:  access.Read,
			id:      "copilotKitState",
			summary: "The shared state, for CopilotKit's inspector.",
			answers: []answer{{http.StatusOK, "The state.", typeJSON, "CopilotKitState"}},
			errors:  readErrors,
		},
	}
}
