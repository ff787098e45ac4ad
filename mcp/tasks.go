package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Tasks: a server may answer a call with the handle of work that goes on. The handle is
// committed before anything else is done with it. From then on the call only asks how the
// work goes, in this process or another one, and is never made again.

// taskState is the state of a task as the server tells it.
type taskState struct {
	ID       string          `json:"taskId"`
	Status   string          `json:"status"`
	Message  string          `json:"statusMessage"`
	TTL      *int64          `json:"ttlMs"`
	Interval *int64          `json:"pollIntervalMs"`
	Requests inputRequests   `json:"inputRequests"`
	Result   json.RawMessage `json:"result"`
	Error    *jsonrpc.Error  `json:"error"`
}

// The bounds of the pauses between two questions how a task goes.
const (
	defaultInterval = 2 * time.Second
	leastInterval   = 250 * time.Millisecond
	longestInterval = 30 * time.Second
)

// interval returns how long to wait before asking again.
func (s *taskState) interval() time.Duration {
	if s.Interval == nil {
		return defaultInterval
	}
	ms := min(max(*s.Interval, leastInterval.Milliseconds()), longestInterval.Milliseconds())
	return time.Duration(ms) * time.Millisecond
}

// beginTask keeps the handle of a task, and follows it.
func (c *calling) beginTask(ctx context.Context, raw json.RawMessage) (holdfast.ToolResult, error) {
	var s taskState
	if err := json.Unmarshal(raw, &s); err != nil || s.ID == "" {
		return holdfast.ToolResult{}, c.lost("the server has answered with a task that has no id", err)
	}
	c.kept = kept{Task: &task{ID: s.ID}}
	if s.TTL != nil && *s.TTL > 0 {
		c.kept.Task.Expires = time.Now().
			Add(time.Duration(min(*s.TTL, int64(365*24*time.Hour/time.Millisecond))) * time.Millisecond)
	}
	if err := c.keep(ctx); err != nil {
		return holdfast.ToolResult{}, err
	}
	if s.Status == "working" {
		if err := pause(ctx, s.interval()); err != nil {
			return holdfast.ToolResult{}, c.taskCut(ctx, err)
		}
	}
	return c.followTask(ctx)
}

// followTask asks how a task goes until it has ended.
func (c *calling) followTask(ctx context.Context) (holdfast.ToolResult, error) {
	if err := c.passOn(ctx); err != nil {
		return holdfast.ToolResult{}, c.taskCut(ctx, err)
	}
	for {
		s, err := c.taskState(ctx)
		if err != nil {
			return holdfast.ToolResult{}, c.taskCut(ctx, err)
		}
		switch s.Status {
		case "completed":
			return c.finish(ctx, s.Result)
		case "failed":
			text := "it does not say why"
			if s.Error != nil {
				text = reason(s.Error)
			}
			return holdfast.ToolResult{Text: fmt.Sprintf("%s has failed: %s.", c.spec.Name, text), Failed: true}, nil
		case "cancelled":
			return holdfast.ToolResult{Text: c.spec.Name + " was cancelled by its server.", Failed: true}, nil
		case "input_required":
			ask, err := c.taskAsks(ctx, s)
			if ask != nil || err != nil {
				return holdfast.ToolResult{}, orInterrupt(err, ask)
			}
		}
		if s.Message != "" {
			c.notices.add(ctx, progress{Message: shorten(s.Message, 1000)})
		}
		err = pause(ctx, s.interval())
		if err == nil && time.Now().After(c.until) {
			err = fmt.Errorf("%w: a call may take %s", errTimeout, c.peer.o.MaxDuration)
		}
		if err != nil {
			return holdfast.ToolResult{}, c.taskCut(ctx, err)
		}
	}
}

// taskAsks takes over the questions of a task that the server has no answers to yet, and
// returns the first.
func (c *calling) taskAsks(ctx context.Context, s *taskState) (*holdfast.Interrupt, error) {
	open := inputRequests{}
	for key, r := range s.Requests {
		if !slices.Contains(c.kept.Task.Answered, key) {
			open[key] = r
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	questions, err := c.questionsOf(open)
	if err != nil {
		c.cancelTask(ctx)
		return nil, err
	}
	c.kept.Round++
	c.kept.Questions, c.kept.Answers = questions, nil
	if err := c.keep(ctx); err != nil {
		return nil, err
	}
	return c.ask(""), nil
}

// passOn passes the answers of this round on to the task. A server that has them already
// may say that it does not know such questions.
func (c *calling) passOn(ctx context.Context) error {
	if len(c.kept.Questions) == 0 {
		return nil
	}
	_, err := c.insist(ctx, "tasks/update", map[string]any{"taskId": c.kept.Task.ID, "inputResponses": c.kept.Answers})
	if err != nil && !refused(err) {
		return err
	}
	if err != nil {
		c.peer.o.Log.Warn("a task of an MCP server does not take an answer", "tool", c.spec.Name, "error", err)
	}
	for _, q := range c.kept.Questions {
		c.kept.Task.Answered = append(c.kept.Task.Answered, q.Key)
	}
	c.kept.Questions, c.kept.Answers = nil, nil
	return c.keep(ctx)
}

// unusable reports whether an error means that the server has answered, and would answer
// the same again.
func unusable(err error) bool {
	var e *holdfast.Error
	return errors.As(err, &e) && e.Code == codeAnswer
}

// refused reports whether an error is the server's word that it has not started a request.
func refused(err error) bool {
	var e *holdfast.Error
	return errors.As(err, &e) && e.Code == codeRefused
}

// asks reports whether an error is a question to a person.
func asks(err error) bool { return errors.As(err, new(*holdfast.Interrupt)) }

// taskState asks how the task goes.
func (c *calling) taskState(ctx context.Context) (*taskState, error) {
	raw, err := c.insist(ctx, "tasks/get", map[string]any{"taskId": c.kept.Task.ID})
	if err != nil {
		return nil, err
	}
	var s taskState
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, c.lost("what the server says of it cannot be read", err)
	}
	return &s, nil
}

// insist sends a request about the task until the server answers or the time is up: the work
// goes on, whatever becomes of the connection. A person who has to log in first is asked.
func (c *calling) insist(ctx context.Context, method string, members map[string]any) (json.RawMessage, error) {
	wait := leastInterval
	for {
		err := c.connect(ctx)
		if err == nil {
			var raw json.RawMessage
			if raw, err = c.send(ctx, method, members); err == nil || refused(err) || unusable(err) || asks(err) {
				return raw, err
			}
		}
		switch now := time.Now(); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case now.After(c.until), !c.kept.Task.Expires.IsZero() && now.After(c.kept.Task.Expires):
			return nil, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
		wait = min(2*wait, longestInterval)
	}
}

// taskCut returns what it means that a task is not followed any more. The server is told
// only if the work is not wanted any more.
func (c *calling) taskCut(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), holdfast.ErrCancelled), ctx.Err() == nil && asks(err):
		return err // it is followed by the next process
	case ctx.Err() != nil || !refused(err):
		c.cancelTask(ctx)
	}
	if ctx.Err() != nil || unusable(err) || errors.Is(err, holdfast.ErrOutcomeUnknown) {
		return err
	}
	return c.lost("it became a task, of which its server says nothing more", err)
}

// cancelTask asks the server to stop the work. It does not wait for that.
func (c *calling) cancelTask(ctx context.Context) {
	const timeout = 5 * time.Second
	x, id := c.x, c.kept.Task.ID
	if x == nil {
		return
	}
	c.peer.conn.start(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		r := &wire.Request{Method: "tasks/cancel", Header: c.header}
		if _, err := x.request(ctx, r, &params{members: map[string]any{"taskId": id}}); err != nil {
			c.peer.o.Log.Warn("a task of an MCP server could not be cancelled", "tool", c.spec.Name, "error", err)
		}
	})
}
