package http

import (
	"net/http"
	"slices"

	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// routes are those that the AI SDK's transport expects, and the two that it lacks.
func (a *aiSDK) routes() []route {
	notFound := []string{codes.AgentNotFound, codes.InvalidInput}
	return []route{
		{
			method:    "POST",
			path:      routeAISDK,
			do:        a.postChat,
			noIfMatch: runNeedsNoETag,
			asks:      true,
			id:        "aiSDKChat",
			body:      "AISDKPost",
			params:    []string{"sdk", "LastEventID", "after", "HoldfastResume", "traceparent"},
			summary: "Take what the AI SDK's DefaultChatTransport sends: a message, the wish for another answer, " +
				"outputs of tools, answers to approvals.",
			answers: []answer{uiStream},
			errors:  runErrors,
		},
		{
			method: "GET",
			path:   routeAISDK + "/{thread}/stream",
			do:     a.getChatStream,
			action: access.Read,
			id:     "aiSDKStream",
			params: []string{"sdk", "LastEventID", "after", "HoldfastResume"},
			summary: "Resume a chat: the answer that is being written, or has been completed within the last ten " +
				"seconds, from its start. With a cursor: the rest of the newest run.",
			answers: []answer{uiStream, {code: http.StatusNoContent, text: "No answer is being written."}},
			errors:  slices.Concat(readErrors, notFound, []string{codes.InvalidCursor, codes.LimitExceeded}),
		},
		{
			method:       "POST",
			path:         routeAISDK + "/{thread}/stop",
			do:           a.postChatStop,
			noIfMatch:    cancelNeedsNoETag,
			action:       access.Read,
			id:           "aiSDKStop",
			body:         "CopilotKitStop",
			bodyOptional: true,
			params:       []string{"sdk"},
			summary:      "Cancel the answer that is being written.",
			answers:      []answer{{http.StatusOK, "Whether there was one.", typeJSON, "CopilotKitStopped"}},
			errors:       slices.Concat(readErrors, notFound, []string{codes.PayloadTooLarge}),
		},
		{
			method:  "GET",
			path:    routeAISDK + "/{thread}",
			do:      a.getChat,
			action:  access.Read,
			id:      "aiSDKHistory",
			params:  []string{"sdk"},
			summary: "The history as UI messages, for a page's first load; empty for a new chat.",
			answers: []answer{{http.StatusOK, "The chat.", typeJSON, "AISDKChat"}},
			errors:  slices.Concat(readErrors, notFound),
		},
	}
}

// uiStream is a UI message stream.
var uiStream = answer{
	http.StatusOK, "The AI SDK's UI message stream, as Server-Sent Events.", typeSSE, "",
}
