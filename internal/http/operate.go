package http

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// The routes for the page and for operators: what the page has to know before it shows
// anything, the server's own figures and settings, tools by hand, and the end of a process
// that is there for trying out.

var operateErrors = []string{codes.NotFound}

// consoleAPI has the routes for the page and for operators.
type consoleAPI struct {
	console      Console // nil if nobody operates the server over HTTP
	demo         Demo    // nil for most
	agents       *agentAPI
	authenticate func(*http.Request) (holdfast.Principal, error)
	keyless      bool
	maxBody      int64
	maxMediaBody int64
	bodies       *exchange.Receiver
}

// routes are those for the page and for operators.
func (a *consoleAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/ui/config.json",
			do:      a.getPageConfig,
			open:    true,
			id:      "pageConfig",
			summary: "The facts that the web UI needs before it shows anything.",
			answers: []answer{{http.StatusOK, "The facts that it needs.", typeJSON, "PageConfig"}},
		},
		{
			method:  "GET",
			path:    "/overview",
			do:      a.getOverview,
			asks:    true,
			id:      "overview",
			summary: "The server's own figures of the last hour. For operators of the server.",
			answers: []answer{{http.StatusOK, "The figures.", typeJSON, "Overview"}},
			errors:  operateErrors,
		},
		{
			method:  "GET",
			path:    "/settings",
			do:      a.getSettings,
			asks:    true,
			id:      "settings",
			summary: "The server's settings, without secrets. For operators of the server.",
			answers: []answer{{http.StatusOK, "The settings.", typeJSON, "SettingList"}},
			errors:  operateErrors,
		},
		{
			method:       "POST",
			path:         "/agents/{agent}/tools/{tool}/call",
			do:           a.postToolCall,
			noIfMatch:    changesNoThread,
			asks:         true,
			id:           "callTool",
			body:         "ToolByHand",
			bodyOptional: true,
			summary:      "Call one tool of an agent by hand. For operators of the server.",
			answers: []answer{
				{
					http.StatusOK,
					"The outcome: a result, or the error of a call that failed.",
					typeJSON,
					"ToolOutcome",
				},
			},
			errors: append(
				[]string{
					codes.AgentNotFound,
					codes.InvalidInput,
					codes.PayloadTooLarge,
					codes.ShuttingDown,
					codes.UnsupportedMediaType,
				},
				operateErrors...),
		},
		{
			method:    "POST",
			path:      "/demo/kill",
			do:        a.postKill,
			noIfMatch: changesNoThread,
			open:      true,
			id:        "kill",
			summary: "Kill the process with SIGKILL, to see its runs go on. Only a server for " +
				"trying out has this route.",
			answers: []answer{{http.StatusAccepted, "The process dies now.", typeJSON, "Killed"}},
			errors:  []string{codes.NotFound, codes.UnsupportedMediaType},
		},
	}
}

// pageConfig is what the page has to know before it shows anything.
type pageConfig struct {
	Version string `json:"version"`
	// Demo: the default agent's model is scripted, so that what it understands can be
	// proposed. Kill: POST /demo/kill works.
	Demo bool `json:"demo"`
	Kill bool `json:"kill"`
	// Auth is "key" if callers must show a key or a token, otherwise "none".
	Auth string `json:"auth"`
	// Identified: the request has shown a key or a token that is good, or needs none.
	Identified bool `json:"identified"`
	// Roles are the caller's. TenantOperator and ServerOperator say whether the routes for
	// operators of the tenant and of the server work for them.
	Roles          []access.Role `json:"roles"`
	TenantOperator bool          `json:"tenantOperator"`
	ServerOperator bool          `json:"serverOperator"`
	// DefaultAgent is the agent of POST /runs, if the caller may be shown it.
	DefaultAgent string `json:"defaultAgent,omitempty"`
	// MaxBody is how large the body of a request may be, in bytes.
	MaxBody int64 `json:"maxBody"`
	// MaxMediaBody is how large it may be where more than half of it is media.
	MaxMediaBody int64 `json:"maxMediaBody"`
}

// getPageConfig is GET /ui/config.json. It needs no key: a page without one learns that it has
// to ask for it.
func (a *consoleAPI) getPageConfig(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	c := pageConfig{
		Version:      a.agents.version,
		Auth:         "key",
		Roles:        []access.Role{},
		MaxBody:      a.maxBody,
		MaxMediaBody: a.maxMediaBody,
	}
	if a.keyless {
		c.Auth = "none"
	}
	if a.demo != nil {
		c.Demo, c.Kill = a.demo.Scripted(), a.demo.CanKill(r)
	}
	who, err := a.authenticate(r)
	if c.Identified = err == nil; c.Identified {
		c.Roles = slices.DeleteFunc(access.Roles(), func(role access.Role) bool { return !who.Rights.Has(role) })
		c.TenantOperator = a.may(r, who, access.OperateTenant, "") == nil
		c.ServerOperator = a.may(r, who, access.OperateServer, "") == nil
		if a.agents.agents != nil {
			if all := a.agents.agents.Agents(); len(all) > 0 && a.agents.mayBeShown(r, who, all[0].Name) {
				c.DefaultAgent = all[0].Name
			}
		}
	}
	exchange.WriteJSON(w, http.StatusOK, c)
	return nil
}

// operates returns why the sender of the request may not do something as an operator of the server.
func (a *consoleAPI) operates(r *http.Request, who holdfast.Principal, attempt string) error {
	return a.may(r, who, access.OperateServer, attempt)
}

// may returns why the sender of the request may not do something as an operator.
func (a *consoleAPI) may(r *http.Request, who holdfast.Principal, action access.Action, attempt string) error {
	if a.console == nil {
		return holdfast.Errorf(codes.NotFound, "This server has no routes for operators.").
			WithHint("GET /openapi.json describes every route.")
	}
	return a.console.Operates(r, who, action, attempt)
}

// getOverview is GET /overview. Pages ask for it every few seconds, so it is not in the log of
// what was done; it shows nothing of any user.
func (a *consoleAPI) getOverview(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := a.operates(r, who, "overview"); err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, a.console.Overview(r.Context()))
	return nil
}

// getSettings is GET /settings.
func (a *consoleAPI) getSettings(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := a.operates(r, who, "read_settings"); err != nil {
		return err
	}
	settings := a.console.Settings(r.Context(), who)
	if settings == nil {
		return holdfast.Errorf(codes.NotFound, "This server does not say what it was started with.").
			WithHint("A program can, with Config.Settings.")
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"settings": settings})
	return nil
}

// postToolCall is POST /agents/{agent}/tools/{tool}/call.
func (a *consoleAPI) postToolCall(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := a.operates(r, who, "call_tool"); err != nil {
		return err
	}
	var in struct {
		Arguments      json.RawMessage `json:"arguments"`
		IdempotencyKey string          `json:"idempotencyKey"`
	}
	if err := a.bodies.ReadObject(w, r, &in, "arguments", "idempotencyKey"); err != nil {
		return err
	}
	if err := exchange.CheckText("idempotencyKey", in.IdempotencyKey); err != nil {
		return err
	}
	if text := strings.TrimSpace(string(in.Arguments)); text == "" || text == "null" {
		in.Arguments = json.RawMessage("{}")
	}
	outcome, err := a.console.CallTool(r.Context(), who, ToolByHand{
		Agent: param(r, "agent"), Tool: param(r, "tool"), Arguments: in.Arguments, IdempotencyKey: in.IdempotencyKey,
	})
	return exchange.Shown(w, outcome, err)
}

// postKill is POST /demo/kill. The response is on its way before the process dies.
func (a *consoleAPI) postKill(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if a.demo == nil || !a.demo.CanKill(r) {
		return holdfast.Errorf(codes.NotFound, "There is no %s.", r.URL.Path).
			WithHint("Only a server that was started with the demo model, for its own machine, can be killed by its " +
				"page, and the page must be opened at the address with #token= that the server printed.")
	}
	body, err := json.Marshal(map[string]string{"process": a.demo.Process()})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	exchange.JSONHeader(w, http.StatusAccepted)
	// Even if the response cannot be sent, the process dies.
	_, _ = w.Write(body)
	_ = http.NewResponseController(w).Flush()
	a.demo.Kill()
	return nil
}
