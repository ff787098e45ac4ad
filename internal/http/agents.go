package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// The routes that describe agents: which ones there are, and what each can do, in the
// form of AG-UI's capabilities.

// Agents lists the agents that can be run.
type Agents interface {
	// Agents returns every agent as they are now, the default one first.
	Agents() []agentcard.Info
}

// agentAPI has the routes that describe agents.
type agentAPI struct {
	agents    Agents // nil if they are not listed
	authorize authorizer
	version   string
}

// routes are those that describe agents.
func (api *agentAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/agents",
			do:      api.getAgents,
			asks:    true,
			id:      "listAgents",
			summary: "List the agents with their tools and capabilities, the default one first.",
			answers: []answer{{http.StatusOK, "The agents.", typeJSON, "AgentList"}},
			errors:  []string{codes.NotFound},
		},
		{
			method:  "GET",
			path:    "/agents/{agent}/capabilities",
			do:      api.getCapabilities,
			asks:    true,
			id:      "getCapabilities",
			summary: "The agent's abilities, as AG-UI capabilities.",
			answers: []answer{{http.StatusOK, "The capabilities.", typeJSON, "Capabilities"}},
			errors:  []string{codes.AgentNotFound, codes.NotFound},
		},
	}
}

// getAgents is GET /agents.
func (api *agentAPI) getAgents(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if api.agents == nil {
		return errNoAgents()
	}
	views := []agentcard.Shown{}
	for i, a := range api.agents.Agents() {
		if api.mayBeShown(r, who, a.Name) {
			views = append(views, agentcard.Show(&a, i == 0, api.version))
		}
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"agents": views})
	return nil
}

// getCapabilities is GET /agents/{agent}/capabilities, where AG-UI clients look for
// them by convention; the standard names no path.
func (api *agentAPI) getCapabilities(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if api.agents == nil {
		return errNoAgents()
	}
	name := param(r, "agent")
	for _, a := range api.agents.Agents() {
		if a.Name == name && api.mayBeShown(r, who, name) {
			exchange.WriteJSON(w, http.StatusOK, agentcard.CapabilitiesOf(&a, api.version))
			return nil
		}
	}
	return holdfast.Errorf(codes.AgentNotFound, "There is no agent %q.", name).WithHint("GET /agents lists them.")
}

// mayBeShown reports whether a caller may be shown an agent.
func (api *agentAPI) mayBeShown(r *http.Request, who holdfast.Principal, agent string) bool {
	return api.authorize(r.Context(), who, access.Read, agent) == nil
}

func errNoAgents() error {
	return holdfast.Errorf(codes.NotFound, "This server does not list its agents.").
		WithHint("POST /runs uses the default agent.")
}
