package http

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// The routes that describe agents: which ones there are, and what each can do, in the
// form of AG-UI's capabilities.

// shownAgent is an agent as GET /agents shows it.
type shownAgent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Revision    string `json:"revision,omitempty"`
	Default     bool   `json:"default"`
	// Demo: the model is scripted, and understands what its "help" says.
	Demo bool `json:"demo"`
	// Models are called as in events, logs and metrics.
	Models []string `json:"models"`
	// Approvals says who answers the agent's questions: user or approver.
	Approvals    access.Role  `json:"approvals"`
	Tools        []shownTool  `json:"tools"`
	Middleware   []string     `json:"middleware"`
	Capabilities capabilities `json:"capabilities"`
}

// shownTool is one of the server's tools. Effect says what running it twice would do.
type shownTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Effect      holdfast.Effect `json:"effect"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	// TimeoutMs bounds one call; 0 means that nothing does.
	TimeoutMs int64 `json:"timeoutMs"`
	// Outside: calls are finished from outside.
	Outside bool `json:"outside,omitempty"`
}

// capabilities are AG-UI's AgentCapabilities (AG-UI 1.0, capabilities). An absent
// group or member is undeclared, which is not the same as no: whatever depends on the
// model behind an agent is left out.
type capabilities struct {
	Identity       identityCap  `json:"identity"`
	Transport      transportCap `json:"transport"`
	Tools          toolsCap     `json:"tools"`
	Output         *outputCap   `json:"output,omitempty"`
	State          stateCap     `json:"state"`
	Multimodal     *mediaCap    `json:"multimodal,omitempty"`
	Execution      *executeCap  `json:"execution,omitempty"`
	HumanInTheLoop humanCap     `json:"humanInTheLoop"`
	Custom         customCap    `json:"custom"`
}

// customCap is what AG-UI has no word for.
type customCap struct {
	Holdfast holdfastCap `json:"holdfast"`
}

// holdfastCap says how interrupted streams are resumed, which transport.resumable leaves
// open: see docs/protocol.md, "A proposal".
type holdfastCap struct {
	Cursors cursorsCap `json:"cursors"`
}

type cursorsCap struct {
	Request  string `json:"request"`  // the header that asks for cursors in events, with its value
	Member   string `json:"member"`   // where an event has its cursor
	Continue string `json:"continue"` // the header in which the cursor of the last event is sent back
}

type identityCap struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
}

type transportCap struct {
	Streaming         bool `json:"streaming"`
	Websocket         bool `json:"websocket"`
	HTTPBinary        bool `json:"httpBinary"`
	PushNotifications bool `json:"pushNotifications"`
	Resumable         bool `json:"resumable"`
}

type toolsCap struct {
	Supported      bool       `json:"supported"`
	Items          []toolItem `json:"items"`
	ParallelCalls  bool       `json:"parallelCalls"`
	ClientProvided bool       `json:"clientProvided"`
}

// toolItem is AG-UI's Tool.
type toolItem struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type outputCap struct {
	StructuredOutput   bool     `json:"structuredOutput"`
	SupportedMIMETypes []string `json:"supportedMimeTypes"`
}

type mediaCap struct {
	Input  *mediaIn  `json:"input,omitempty"`
	Output *mediaOut `json:"output,omitempty"`
}

type mediaIn struct {
	Image *bool `json:"image,omitempty"`
	Audio *bool `json:"audio,omitempty"`
	Video *bool `json:"video,omitempty"`
	PDF   *bool `json:"pdf,omitempty"`
}

type mediaOut struct {
	Image *bool `json:"image,omitempty"`
	Audio *bool `json:"audio,omitempty"`
}

// mediaOf returns what is declared of media; nil if nothing is.
func mediaOf(a *AgentInfo) *mediaCap {
	said := func(types map[holdfast.PartType]bool, t holdfast.PartType) *bool {
		if yes, declared := types[t]; declared {
			return &yes
		}
		return nil
	}
	c := &mediaCap{}
	if len(a.Takes) > 0 {
		c.Input = &mediaIn{
			said(a.Takes, holdfast.PartImage),
			said(a.Takes, holdfast.PartAudio),
			said(a.Takes, holdfast.PartVideo),
			said(a.Takes, holdfast.PartDocument),
		}
	}
	if len(a.Makes) > 0 {
		c.Output = &mediaOut{said(a.Makes, holdfast.PartImage), said(a.Makes, holdfast.PartAudio)}
	}
	if *c == (mediaCap{}) {
		return nil
	}
	return c
}

type stateCap struct {
	Snapshots       bool `json:"snapshots"`
	Deltas          bool `json:"deltas"`
	PersistentState bool `json:"persistentState"`
}

type executeCap struct {
	MaxIterations int `json:"maxIterations"`
}

type humanCap struct {
	Supported  bool `json:"supported"`
	Interrupts bool `json:"interrupts"`
}

// agentAPI has the routes that describe agents.
type agentAPI struct {
	agents    Agents // nil if they are not listed
	authorize authorizer
	version   string
}

// routes are those that describe agents.
func (a *agentAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/agents",
			do:      a.getAgents,
			asks:    true,
			id:      "listAgents",
			summary: "List the agents with their tools and capabilities, the default one first.",
			answers: []answer{{http.StatusOK, "The agents.", typeJSON, "AgentList"}},
			errors:  []string{codes.NotFound},
		},
		{
			method:  "GET",
			path:    "/agents/{agent}/capabilities",
			do:      a.getCapabilities,
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
	views := []shownAgent{}
	for i, a := range api.agents.Agents() {
		if api.mayBeShown(r, who, a.Name) {
			views = append(views, api.view(&a, i == 0))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"agents": views})
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
			writeJSON(w, http.StatusOK, api.capabilities(&a))
			return nil
		}
	}
	return holdfast.Errorf(codes.AgentNotFound, "There is no agent %q.", name).WithHint("GET /agents lists them.")
}

// mayBeShown reports whether a caller may be shown an agent.
func (a *agentAPI) mayBeShown(r *http.Request, who holdfast.Principal, agent string) bool {
	return a.authorize(r.Context(), who, access.Read, agent) == nil
}

func errNoAgents() error {
	return holdfast.Errorf(codes.NotFound, "This server does not list its agents.").
		WithHint("POST /runs uses the default agent.")
}

func (api *agentAPI) view(a *AgentInfo, first bool) shownAgent {
	v := shownAgent{
		Name:         a.Name,
		Description:  a.Description,
		Revision:     a.Revision,
		Default:      first,
		Demo:         a.Scripted,
		Approvals:    cmp.Or(a.Approvals, access.RoleUser),
		Tools:        make([]shownTool, len(a.Tools)),
		Models:       append([]string{}, a.Models...),
		Middleware:   append([]string{}, a.Middleware...),
		Capabilities: api.capabilities(a),
	}
	for i, t := range a.Tools {
		v.Tools[i] = shownTool{
			Name:        t.Name,
			Description: t.Description,
			Effect:      cmp.Or(t.Effect, holdfast.EffectIdempotent),
			Parameters:  t.Parameters,
			TimeoutMs:   max(cmp.Or(t.Timeout, a.ToolTimeout), 0).Milliseconds(),
			Outside:     t.Outside != nil,
		}
	}
	return v
}

// capabilities describes what the routes of this package serve and how the agent is
// configured.
func (api *agentAPI) capabilities(a *AgentInfo) capabilities {
	c := capabilities{
		Identity: identityCap{Name: a.Name, Type: "holdfast", Description: a.Description, Version: api.version},
		// Resumable: what streams a run continues after Last-Event-ID.
		Transport: transportCap{Streaming: true, Resumable: true},
		Tools: toolsCap{
			Supported:      true,
			Items:          make([]toolItem, len(a.Tools)),
			ParallelCalls:  a.ParallelTools > 1,
			ClientProvided: true,
		},
		State:          stateCap{Snapshots: true, PersistentState: a.Persistent},
		HumanInTheLoop: humanCap{Supported: true, Interrupts: true},
		Custom: customCap{holdfastCap{cursorsCap{
			Request: headerCursors + ": " + inMetadata, Member: "metadata.holdfast.cursor", Continue: headerLastEvent,
		}}},
	}
	for i, t := range a.Tools {
		c.Tools.Items[i] = toolItem{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	}
	c.Multimodal = mediaOf(a)
	if a.Formed {
		c.Output = &outputCap{StructuredOutput: true, SupportedMIMETypes: []string{"application/json"}}
	}
	if a.MaxIterations > 0 {
		c.Execution = &executeCap{MaxIterations: a.MaxIterations}
	}
	return c
}
