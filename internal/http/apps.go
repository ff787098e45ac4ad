package http

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// Interfaces of tools (MCP Apps): what a page needs to show one, and the calls that it makes.

// Apps has the interfaces of tools.
type Apps interface {
	// App returns the interface that a message of a thread shows: its page, and what it may reach.
	App(ctx context.Context, who holdfast.Principal, thread, message string) (any, error)
	// CallForApp calls a tool of the same server for it, and returns the result as MCP has it.
	CallForApp(ctx context.Context, who holdfast.Principal, thread, message string, call AppCall) (json.RawMessage,
		error)
}

// AppCall is a call that an interface makes.
type AppCall struct {
	// Name is the server's own name for the tool.
	Name      string
	Arguments json.RawMessage
}

// appAPI has the routes of interfaces.
type appAPI struct {
	apps   Apps
	bodies *exchange.Receiver
}

// routes are those of interfaces.
func (a *appAPI) routes() []route {
	errs := slices.Concat(readErrors, []string{codes.AgentNotFound, codes.InvalidInput})
	return []route{
		{
			method:  "GET",
			path:    "/threads/{thread}/apps/{message}",
			do:      a.getApp,
			action:  access.Read,
			id:      "getApp",
			summary: "The interface of a tool (MCP Apps) that an activity shows, read from its server now.",
			answers: []answer{{http.StatusOK, "The page, and what it may reach.", typeJSON, "App"}},
			errors:  errs,
		},
		{
			method:    "POST",
			path:      "/threads/{thread}/apps/{message}/call",
			do:        a.postAppCall,
			action:    access.Run,
			noIfMatch: changesNoThread,
			id:        "callForApp",
			body:      "AppCall",
			summary:   "Call a tool for an interface, as the agent's middleware allows it.",
			answers:   []answer{{http.StatusOK, "The result, as MCP has it.", typeJSON, "AppResult"}},
			errors:    slices.Concat(errs, []string{codes.PayloadTooLarge, codes.UnsupportedMediaType}),
		},
	}
}

// getApp is GET /threads/{thread}/apps/{message}.
func (a *appAPI) getApp(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	app, err := a.apps.App(r.Context(), who, param(r, "thread"), param(r, "message"))
	return exchange.Shown(w, app, err)
}

// postAppCall is POST /threads/{thread}/apps/{message}/call.
func (a *appAPI) postAppCall(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in AppCall
	if err := a.bodies.ReadObject(w, r, &in, "name", "arguments"); err != nil {
		return err
	}
	if text := strings.TrimSpace(string(in.Arguments)); text == "" || text == "null" {
		in.Arguments = json.RawMessage("{}")
	}
	result, err := a.apps.CallForApp(r.Context(), who, param(r, "thread"), param(r, "message"), in)
	return exchange.Shown(w, result, err)
}
