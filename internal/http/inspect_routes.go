package http

import (
	"net/http"
	"slices"

	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// inspectRoutes are those that show what is inside threads.
var inspectRoutes = []route{
	{
		method:  "GET",
		path:    "/questions",
		do:      getQuestions,
		action:  access.Read,
		id:      "listQuestions",
		params:  []string{"limit", "before"},
		summary: "The open questions of all your threads, the newest first.",
		answers: []answer{{http.StatusOK, "The questions.", typeJSON, "QuestionList"}},
		errors:  listErrors,
	},
	{
		method:  "GET",
		path:    "/threads/{thread}/work",
		do:      getWork,
		action:  access.Read,
		id:      "getWork",
		summary: "What is under way and in no checkpoint yet: open calls, intents, pending writes, calls in doubt.",
		answers: []answer{{http.StatusOK, "The work.", typeJSON, "Work"}},
		errors:  readErrors,
	},
	{
		method:  "GET",
		path:    "/threads/{thread}/calls",
		do:      getCalls,
		action:  access.Read,
		id:      "listCalls",
		params:  []string{"ofRun", "limit", "beforeRun"},
		summary: "The tool calls of a run, or of the newest runs, with effect, key, attempts and times.",
		answers: []answer{{http.StatusOK, "The calls.", typeJSON, "CallList"}},
		errors:  slices.Concat(readErrors, []string{codes.InvalidInput}),
	},
	{
		method:  "GET",
		path:    "/threads/{thread}/usage",
		do:      getUsage,
		action:  access.Read,
		id:      "getUsage",
		summary: "What all runs of a thread have used, and what that costs.",
		answers: []answer{{http.StatusOK, "The usage.", typeJSON, "ThreadUsage"}},
		errors:  readErrors,
	},
	{
		method:  "GET",
		path:    "/threads/{thread}/export",
		do:      getExport,
		action:  access.Read,
		id:      "exportThread",
		summary: "All that is stored of a thread, as one document.",
		answers: []answer{{http.StatusOK, "The document.", typeJSON, "ThreadDocument"}},
		errors:  slices.Concat(readErrors, []string{codes.RunInProgress}),
	},
	{
		method:  "POST",
		path:    "/threads/import",
		do:      postImport,
		action:  access.Change,
		id:      "importThread",
		body:    "ThreadDocument",
		params:  []string{"newThread"},
		summary: "Make a thread out of a document.",
		answers: []answer{{http.StatusCreated, "The new thread.", typeJSON, "ThreadInfo"}},
		errors:  slices.Concat(cleanErrors, []string{codes.LimitExceeded, codes.ThreadExists}),
	},
	{
		method:  "GET",
		path:    "/threads/{thread}/runs/{run}/log",
		do:      getLog,
		action:  access.Read,
		id:      "getLog",
		params:  []string{"limitRecords", "after"},
		summary: "The records of a run in one answer, without waiting for more.",
		answers: []answer{{http.StatusOK, "A page of records.", typeJSON, "Log"}},
		errors:  slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput}),
	},
}
