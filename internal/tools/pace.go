package tools

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// paced makes a tool take some time, so that a demo has something to watch and to kill.
// Tools that run in parallel finish one after another.
type paced struct {
	holdfast.Tool
	pause time.Duration
}

// Call waits, then runs the tool. If it is cancelled while it waits, it runs nothing.
func (p *paced) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	t := time.NewTimer(p.pause)
	defer t.Stop()
	select {
	case <-t.C:
		return p.Tool.Call(ctx, call)
	case <-ctx.Done():
		return holdfast.ToolResult{}, context.Cause(ctx)
	}
}
