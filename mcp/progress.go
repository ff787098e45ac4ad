package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"time"

	"github.com/holdfast-agents/holdfast"
)

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
	of     map[string]any      // which call
	hide   func(string) string // takes secrets out of the news
	log    *slog.Logger
	latest *progress // not shown yet
	shown  time.Time
	timer  *time.Timer
}

// add shows the news, or keeps them until their time has come.
func (n *notices) add(ctx context.Context, p progress) {
	p.Message = n.hide(p.Message)
	n.latest = &p
	wait := time.Until(n.shown.Add(noticePause))
	switch {
	case wait <= 0:
		n.show(ctx)
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
func (n *notices) show(ctx context.Context) {
	p := n.latest
	n.latest, n.timer, n.shown = nil, nil, time.Now()
	if p == nil {
		return
	}
	value := maps.Clone(n.of)
	for name, v := range map[string]string{"progress": p.Progress.String(), "total": p.Total.String()} {
		if v != "" {
			value[name] = json.Number(v)
		}
	}
	if p.Message != "" {
		value["message"] = p.Message
	}
	if err := holdfast.Notify(ctx, "mcp.progress", value); err != nil {
		n.log.Debug("progress is not shown", "tool", n.of["tool"], "error", err)
	}
}
