package http

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// Routes: what the router and /openapi.json are made from. Each resource has its own in the file
// of its handlers; here is what they are made of, and what several of them share.

// route is a method and a path, what serves them, and what /openapi.json says about
// them. The router and the document come from the same table, so they cannot
// contradict each other.
type route struct {
	method, path string
	do           endpoint
	// open needs no authentication.
	open bool
	// action is what callers must be allowed to do. A route that is not open has one, or asks
	// itself: for one that depends on what the request says, or that the engine asks about when
	// it knows the agent.
	action access.Action
	asks   bool
	// noIfMatch is what guards the request instead of If-Match, on a route that does not take it;
	// others read it themselves.
	noIfMatch string

	id      string // OpenAPI's operationId
	summary string
	params  []string // names of components.parameters besides those in the path
	body    string   // the schema of the JSON body, if there is one
	// bodyKinds are the media types of the body; application/json if there are none.
	bodyKinds []string
	// bodyOptional: a missing body means {}.
	bodyOptional bool
	answers      []answer
	errors       []string // the codes that it may answer with, besides those of every route
}

// endpoint is the function of a route: it answers, or returns the error to answer
// with. Callers of open routes are not authenticated, so who is empty there.
type endpoint func(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error

// authorizer decides whether a caller may do something; its error refuses.
type authorizer = func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error

// answer is a way in which a route succeeds.
type answer struct {
	code int
	text string
	kind string // a media type; empty without a body
	// schema names one of components.schemas; empty means text.
	schema string
}

// The patterns of routes that are named elsewhere.
const (
	routeRuns      = "/runs"
	routeAgentRuns = "/agents/{agent}/runs"
	// routeCopilotKit is the prefix of CopilotKit's routes, and the one of its envelope.
	routeCopilotKit        = "/copilotkit"
	routeCopilotKitRun     = "/copilotkit/agent/{agent}/run"
	routeCopilotKitSuggest = "/copilotkit/agent/{agent}/suggest"
	// routeAISDK is the path that a page gives to the AI SDK's transport, which makes the others of
	// it.
	routeAISDK = "/ai-sdk/{agent}"
)

// runRoutes are the routes by which runs are started.
var runRoutes = []string{
	routeRuns, routeAgentRuns, routeCopilotKit, routeCopilotKitRun, routeCopilotKitSuggest, routeAISDK,
}

// methodsOf returns the methods that a preflight allows.
func methodsOf(routes []route) string {
	methods := []string{http.MethodOptions}
	for _, r := range routes {
		methods = append(methods, r.method)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// readsThreads reports whether a route only reads threads.
func readsThreads(r *route) bool {
	return r.method == http.MethodGet && !r.open && (strings.HasPrefix(r.path, "/threads") || r.path == "/questions")
}

// Parts that several routes share.
var (
	eventStream    = answer{http.StatusOK, "The run's AG-UI events, as Server-Sent Events.", typeSSE, ""}
	nothingMissing = answer{code: http.StatusNoContent, text: "The run has ended, and nothing comes after the cursor."}
	runAnswers     = []answer{
		eventStream,
		nothingMissing,
		{http.StatusOK, "As JSON, if Accept prefers it: the run, once it has ended.", typeJSON, "RunResult"},
	}
	pageAnswers  = []answer{{http.StatusOK, "The page.", "text/html", ""}}
	headAnswers  = []answer{{code: http.StatusOK, text: "The page is there."}}
	resumeParams = []string{"LastEventID", "after", "HoldfastResume", "HoldfastCursors", "traceparent"}

	// storedErrors are about stored data.
	storedErrors = []string{
		codes.StoreUnavailable, codes.VersionTooNew, codes.CheckpointInvalid, codes.CheckpointUnreadable,
	}
	listErrors   = slices.Concat(storedErrors, []string{codes.InvalidInput})
	cleanErrors  = slices.Concat(listErrors, []string{codes.PayloadTooLarge, codes.UnsupportedMediaType})
	readErrors   = slices.Concat(storedErrors, []string{codes.NotFound, codes.ShuttingDown})
	changeErrors = slices.Concat(readErrors, []string{
		codes.CheckpointConflict,
		codes.InvalidInput,
		codes.PayloadTooLarge,
		codes.RunInProgress,
		codes.UnsupportedMediaType,
	})
	finishErrors = slices.Concat(readErrors, []string{
		codes.AgentNotFound, codes.CallAlreadyAnswered, codes.CallClosed, codes.CallExpired, codes.CheckpointConflict,
		codes.InvalidInput, codes.PayloadTooLarge, codes.RunInProgress, codes.UnsupportedMediaType,
	})
	runErrors = slices.Concat(storedErrors, []string{
		codes.NotAcceptable,
		codes.AgentNotFound,
		codes.CallPending,
		codes.CheckpointConflict,
		codes.CheckpointStale,
		codes.HistoryDiverged,
		codes.InterruptAlreadyAnswered,
		codes.InterruptExpired,
		codes.Interrupted,
		codes.InvalidAnswer,
		codes.InvalidCursor,
		codes.InvalidInput,
		codes.LimitExceeded,
		codes.SchemaChanged,
		codes.StateConflict,
		codes.StateInvalid,
		codes.StateTooNew,
		codes.MidExecution,
		codes.AnswersMissing,
		codes.NotFound,
		codes.NothingToRun,
		codes.PayloadTooLarge,
		codes.RunIDReused,
		codes.RunInProgress,
		codes.ShuttingDown,
		codes.StreamCut,
		codes.ThreadTooLarge,
		codes.MediaRefused,
		codes.TooManyRuns,
		codes.UnknownToolCall,
		codes.UnsupportedMediaType,
		codes.WrongAgent,
	})
)

// Why routes need no condition.
const (
	runNeedsNoETag     = "a run is only begun on the history that the messages show"
	cancelNeedsNoETag  = "a run is named by its id, and one that has ended is not changed"
	finishNeedsNoETag  = "a call is finished once"
	connectNeedsNoETag = "it changes nothing"
	cleanUpNeedsNoETag = "it is about one thread, and this route is about many"
	importNeedsNoETag  = "it makes a new thread"
	changesNoThread    = "it changes no thread"
)
