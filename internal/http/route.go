package http

import (
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/access"
)

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

	id      string // OpenAPI's operationId
	summary string
	params  []string // names of components.parameters besides those in the path
	body    string   // the schema of the JSON body, if there is one
	// bodyOptional: a missing body means {}.
	bodyOptional bool
	answers      []answer
	errors       []string // the codes that it may answer with, besides those of every route
}

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
)

// runRoutes are the routes by which runs are started. The log has each request to them.
var runRoutes = []string{routeRuns, routeAgentRuns, routeCopilotKit, routeCopilotKitRun, routeCopilotKitSuggest}

// methodsOf returns the methods that a preflight allows.
func methodsOf(routes []route) string {
	methods := []string{http.MethodOptions}
	for _, r := range routes {
		methods = append(methods, r.method)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}
