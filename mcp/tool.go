package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Tool is a tool of an MCP server.
type Tool struct {
	server      *Server
	remote      string
	spec        holdfast.ToolSpec
	why         string
	annotations json.RawMessage
	headers     []paramHeader
	app         string // the URI of its interface; empty if it has none
	hidden      bool   // it is only for interfaces
}

// Spec implements [holdfast.Tool].
func (t *Tool) Spec() holdfast.ToolSpec { return t.spec }

// Server returns the server that the tool is of.
func (t *Tool) Server() *Server { return t.server }

// Remote returns the server's own name for the tool.
func (t *Tool) Remote() string { return t.remote }

// Why says why the tool's effect is what it is.
func (t *Tool) Why() string { return t.why }

// ForModels reports whether models may call the tool; if not, only interfaces of its server may: see [Apps].
func (t *Tool) ForModels() bool { return !t.hidden }

// Annotations returns what the server says about the tool, as JSON, such as
// destructiveHint; null if nothing. It may not be true.
func (t *Tool) Annotations() json.RawMessage { return t.annotations }

// Call implements [holdfast.Tool]: it calls the tool at its server. An error that wraps
// [holdfast.ErrOutcomeUnknown] means that the server may have started a call that must not be
// made twice; any other error means that it has not, or that the call has failed.
func (t *Tool) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	arguments, err := t.arguments(call)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	s := &t.server.peer
	c := &calling{
		peer:      s,
		spec:      t.spec,
		remote:    t.remote,
		app:       t.app,
		inHeaders: t.headers,
		call:      call,
		arguments: arguments,
		secrets:   s.secrets,
		until:     time.Now().Add(s.o.MaxDuration),
	}
	c.notices = notices{
		of:   map[string]any{"tool": t.spec.Name, "toolCallId": call.ID},
		hide: func(text string) string { return c.secrets.hide(text) },
		log:  s.o.Log,
	}
	return c.run(ctx)
}

// arguments returns the arguments that the model wrote; an error if they are no object. The
// server checks them against the schema.
func (t *Tool) arguments(call holdfast.ToolCall) (json.RawMessage, error) {
	raw := bytes.TrimSpace(call.Arguments)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if raw[0] != '{' || !json.Valid(raw) {
		return nil, holdfast.Errorf("mcp_arguments", "The arguments of %s are not a JSON object; nothing was run.",
			t.spec.Name).
			Wrap(holdfast.ErrArguments)
	}
	return raw, nil
}
