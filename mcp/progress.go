package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// progress is a server's news of a call.
type progress struct {
	Progress json.Number `json:"progress"`
	Total    json.Number `json:"total,omitempty"`
	Message  string      `json:"message,omitempty"`
}

// progressed hands news to the call that they are of.
func (x *session) progressed(raw json.RawMessage) {
	var said struct {
		Token json.RawMessage `json:"progressToken"`
		progress
	}
	var token string
	if json.Unmarshal(raw, &said) != nil || json.Unmarshal(said.Token, &token) != nil {
		return
	}
	if f, ok := x.progress.Load(token); ok {
		said.Message = shorten(said.Message, 1000)
		f.(func(progress))(said.progress)
	}
}

// newest puts p into a channel with one place, over what is there.
func newest(c chan progress, p progress) {
	for {
		select {
		case c <- p:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}

// noticePause is the least time between two notices of a call's progress.
const noticePause = time.Second

// notices shows a call's progress, the newest once in a while.
type notices struct {
	latest *progress // not shown yet
	shown  time.Time
	timer  *time.Timer
}

// add shows the news, or keeps them until their time has come.
func (n *notices) add(ctx context.Context, c *calling, p progress) {
	p.Message = c.secrets.hide(p.Message)
	n.latest = &p
	wait := time.Until(n.shown.Add(noticePause))
	switch {
	case wait <= 0:
		n.show(ctx, c)
	case n.timer == nil:
		n.timer = time.NewTimer(wait)
	}
}

// due is when show is to be called.
func (n *notices) due() <-chan time.Time {
	if n.timer == nil {
		return nil
	}
	return n.timer.C
}

// show shows the latest news.
func (n *notices) show(ctx context.Context, c *calling) {
	p := n.latest
	n.latest, n.timer, n.shown = nil, nil, time.Now()
	if p == nil {
		return
	}
	value := map[string]any{"tool": c.t.spec.Name, "toolCallId": c.call.ID}
	for name, v := range map[string]string{"progress": p.Progress.String(), "total": p.Total.String()} {
		if v != "" {
			value[name] = json.Number(v)
		}
	}
	if p.Message != "" {
		value["message"] = p.Message
	}
	if err := holdfast.Notify(ctx, "mcp.progress", value); err != nil {
		c.t.server.o.Log.Debug("progress is not shown", "tool", c.t.spec.Name, "error", err)
	}
}
