package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

// Interfaces of tools (MCP Apps, SEP-1865): a tool names a resource of its server, which is a page in
// HTML. The result of a call of it is shown as an activity of AG-UI; the page itself is read when
// somebody looks at it (appread.go).

// takeInterface takes what a tool says of its interface, and reports whether interfaces may call it.
func (t *Tool) takeInterface(raw json.RawMessage) (interfaces bool) {
	var m toolMeta
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &m) // what cannot be read says nothing
	}
	if uri := cmp.Or(m.UI.ResourceURI, m.Before); strings.HasPrefix(uri, scheme) {
		t.app = uri
	}
	who := m.UI.Visibility
	t.hidden = len(who) > 0 && !slices.Contains(who, "model")
	return len(who) == 0 || slices.Contains(who, "app")
}

// finish returns the result of a call that was completed, and shows it in its interface, if it has one.
func (c *calling) finish(ctx context.Context, raw json.RawMessage) (holdfast.ToolResult, error) {
	r, err := resultOf(c.spec.Name, raw, c.peer.o.MaxResultBytes)
	if err != nil || c.peer.o.Apps == nil {
		return r, err
	}
	var got struct {
		Content    []json.RawMessage `json:"content,omitempty"`
		Structured json.RawMessage   `json:"structuredContent,omitempty"`
		IsError    bool              `json:"isError,omitempty"`
		Meta       json.RawMessage   `json:"_meta,omitempty"`
	}
	if json.Unmarshal(raw, &got) != nil {
		return r, nil
	}
	shown := appContent{
		ResourceURI: c.app,
		ServerHash:  c.peer.hash(),
		ServerID:    c.peer.o.Name,
		ToolInput:   c.arguments,
		ToolName:    c.remote,
	}
	for i, piece := range got.Content {
		if page := pageIn(piece); page != nil {
			shown.ResourceURI, shown.Resource = page.URI, piece
			got.Content[i] = instead(page)
			break
		}
	}
	if shown.ResourceURI == "" {
		return r, nil
	}
	if shown.Result, err = json.Marshal(got); err != nil {
		return r, nil
	}
	if shown.Resource != nil { // models need not read it
		if r, err = resultOf(c.spec.Name, shown.Result, c.peer.o.MaxResultBytes); err != nil {
			return r, err
		}
	}
	if _, err := activity.Show(ctx, activity.TypeApp, shown); err != nil && !errors.Is(err, holdfast.ErrNoRun) {
		c.peer.o.Log.Info("the interface of a tool is not shown", "tool", c.spec.Name, "call", c.call.ID, "error", err)
	}
	return r, nil
}

// hash names the server for frontends that have several.
func (p *peer) hash() string {
	sum := sha256.Sum256([]byte(p.o.Name))
	return hex.EncodeToString(sum[:8])
}
