package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/mcp"
)

// apps are the interfaces of the tools of MCP servers.
type apps struct {
	s     *Server
	newID func(prefix string) string
}

// App implements [hfhttp.Apps].
func (a apps) App(ctx context.Context, who holdfast.Principal, thread, message string) (any, error) {
	shown, from, err := a.find(ctx, who, access.Read, thread, message)
	if err != nil {
		return nil, err
	}
	defer shown.Release()
	app, err := from.AppIn(ctx, shown.Content)
	if err != nil {
		a.s.cfg.Log.Warn("an interface cannot be read",
			"mcp", from.Name(), "thread", thread, "app", message, "error", err)
		return nil, holdfast.Errorf(codes.NotFound, "The interface cannot be read from the MCP server %s.",
			from.Name()).
			WithHint("It is read when it is looked at. The server's log has the cause.").
			Wrap(err)
	}
	return app, nil
}

// CallForApp implements [hfhttp.Apps].
func (a apps) CallForApp(
	ctx context.Context, who holdfast.Principal, thread, message string, call hfhttp.AppCall,
) (json.RawMessage, error) {
	shown, from, err := a.find(ctx, who, access.Run, thread, message)
	if err != nil {
		return nil, err
	}
	defer shown.Release()
	result, err := a.call(ctx, shown, from, call)
	var refused *holdfast.Error
	switch {
	case errors.As(err, &refused):
		result = holdfast.ToolResult{Text: refused.Message, Failed: true}
	case err != nil:
		result = holdfast.ToolResult{Text: "The tool has failed; the server's log has the cause.", Failed: true}
		a.s.cfg.Log.Warn("a tool failed", "tool", call.Name, "thread", thread, "app", message, "error", err)
	}
	a.s.audited.audit.note(ctx, caller(who), "call_tool_for_app", thread, err, slog.String("agent", shown.Agent()),
		slog.String("mcp", from.Name()), slog.String("tool", call.Name), slog.Bool("failed", result.Failed))
	return mcp.RawResult(result), nil
}

// call calls a tool that is for interfaces of the server: one that the agent has, or one that only interfaces have.
func (a apps) call(
	ctx context.Context, shown *owner.Interface, from *mcp.Server, call hfhttp.AppCall,
) (holdfast.ToolResult, error) {
	tool, there := from.AppTool(call.Name)
	if there && tool.ForModels() {
		_, there = shown.Tools[tool.Spec().Name]
	}
	if !there {
		return holdfast.ToolResult{}, holdfast.Errorf(codes.NotFound, "There is no tool %q for this interface.",
			call.Name)
	}
	id := a.newID("call")
	return shown.Call(ctx, tool, holdfast.ToolCall{
		ID:        id,
		Name:      tool.Spec().Name,
		Arguments: call.Arguments,
		Key:       strings.ReplaceAll(id, "_", ""),
	})
}

// find returns the interface that a message shows, and the MCP server that it is of.
func (a apps) find(
	ctx context.Context, who holdfast.Principal, action access.Action, thread, message string,
) (*owner.Interface, *mcp.Server, error) {
	shown, err := owner.Interfaces{Engine: a.s.engine}.In(ctx, who, thread, message)
	if err != nil {
		return nil, nil, err
	}
	if err := a.s.cfg.Authorize(ctx, who, action, shown.Agent()); err != nil {
		shown.Release()
		return nil, nil, err
	}
	var content struct {
		ServerID string `json:"serverId"`
	}
	if json.Unmarshal(shown.Content, &content) == nil {
		for _, t := range shown.Tools {
			if tool, is := t.(*mcp.Tool); is && tool.Server().Name() == content.ServerID {
				return shown, tool.Server(), nil
			}
		}
	}
	shown.Release()
	return nil, nil, holdfast.Errorf(codes.NotFound, "The agent %q has no MCP server %q now.", shown.Agent(),
		content.ServerID).
		WithHint("The interface of a tool is read from its server, while people look at it.")
}
