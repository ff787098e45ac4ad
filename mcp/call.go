package mcp

// A call of a tool: what is sent, and how long is waited for what comes back.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// peer is a server as the calls of its tools use it.
type peer struct {
	o       Options
	secrets *secrets
	conn    *connection
	held    *holding
}

// calling is a call in progress.
type calling struct {
	peer      *peer
	spec      holdfast.ToolSpec
	remote    string // the server's name for the tool
	app       string // the URI of its interface; empty if it has none
	inHeaders []paramHeader
	x         *session
	call      holdfast.ToolCall
	arguments json.RawMessage
	header    http.Header
	secrets   *secrets
	until     time.Time
	notices   notices
	kept      kept
}

// maxRounds bounds how often a server can ask to be called again, without a question to a
// person, before it answers.
const maxRounds = 10

// run makes the call, or goes on with one that has kept something.
func (c *calling) run(ctx context.Context) (holdfast.ToolResult, error) {
	if err := c.kept.read(c.call.Kept); err != nil {
		return holdfast.ToolResult{}, c.lost("what it has kept cannot be read", err)
	}
	if c.kept.Sending && c.once() {
		return holdfast.ToolResult{}, c.lost("this server died while it was passing on an answer", nil)
	}
	if ask := c.answered(ctx); ask != nil {
		return holdfast.ToolResult{}, c.askAfterKeeping(ctx, ask)
	}
	if c.kept.Task != nil {
		return c.followTask(ctx)
	}
	for range maxRounds {
		raw, err := c.next(ctx)
		if err != nil {
			return holdfast.ToolResult{}, err
		}
		var r demand
		if err := json.Unmarshal(raw, &r); err != nil || r.Type != typeInput && r.Type != typeTask {
			return c.finish(ctx, raw)
		}
		if r.Type == typeTask {
			return c.beginTask(ctx, raw)
		}
		ask, err := c.demanded(ctx, &r)
		if ask != nil || err != nil {
			return holdfast.ToolResult{}, orInterrupt(err, ask)
		}
		if err := pause(ctx, time.Second<<min(c.kept.Round-1, 5)); err != nil {
			return holdfast.ToolResult{}, err
		}
	}
	return holdfast.ToolResult{}, holdfast.Errorf(codeAnswer,
		"The MCP server %s asks again and again to be called, and does not answer.", c.peer.o.Name)
}

// next takes up a call that was held open or, if there is none, calls the tool.
func (c *calling) next(ctx context.Context) (json.RawMessage, error) {
	if c.kept.Held != "" {
		f, err := c.unhold(ctx)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return c.land(ctx, f)
		}
	}
	return c.callTool(ctx)
}

// callTool calls the tool or, after the server has asked for something, goes on with the
// call. The moment in which an answer is on its way is guarded like the call's beginning.
func (c *calling) callTool(ctx context.Context) (json.RawMessage, error) {
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	members := map[string]any{"name": c.remote, "arguments": c.arguments}
	if c.kept.Round > 0 && c.x.modern() {
		if len(c.kept.Answers) > 0 {
			members["inputResponses"] = c.kept.Answers
		}
		if c.kept.State != nil {
			members["requestState"] = c.kept.State
		}
	}
	if c.kept.Round > 0 && c.once() {
		c.kept.Sending = true
		if err := c.keep(ctx); err != nil {
			return nil, err
		}
	}
	raw, err := c.send(ctx, "tools/call", members)
	if err != nil && c.kept.Sending && !errors.Is(err, holdfast.ErrOutcomeUnknown) && ctx.Err() == nil {
		c.kept.Sending = false // it was not started, so it may be tried again
		if kept := c.keep(ctx); kept != nil {
			return nil, kept
		}
	}
	return raw, err
}

// maxKept is what [holdfast.Keep] takes.
const maxKept = 64 << 10

// keep commits what the call keeps. Where there is no engine there is nothing to come back
// to.
func (c *calling) keep(ctx context.Context) error {
	data, err := json.Marshal(&c.kept)
	if err == nil {
		err = holdfast.Keep(ctx, data)
	}
	switch {
	case err == nil || errors.Is(err, holdfast.ErrNoCall):
		return nil
	case len(data) > maxKept:
		return holdfast.Errorf(codeAnswer,
			"%s was called, and what the MCP server %s asks for is too large to be kept.", c.spec.Name, c.peer.o.Name).
			Wrap(err)
	}
	return c.lost("its state could not be saved", err)
}

// once reports whether the call must not be made again unasked.
func (c *calling) once() bool { return c.spec.Effect == holdfast.EffectOnce }

// lost returns the error of a call of which nobody knows what became.
func (c *calling) lost(why string, cause error) error {
	err := holdfast.ErrOutcomeUnknown
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return holdfast.Errorf(codeUnknown, "%s was called, and it is not known what came of it: %s.", c.spec.Name, why).
		Wrap(err)
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect chooses the connection for the call.
func (c *calling) connect(ctx context.Context) (err error) {
	bounded, cancel := context.WithTimeoutCause(ctx, c.peer.o.Timeout, errTimeout)
	defer cancel()
	if c.x, err = c.peer.conn.session(bounded); err != nil && ctx.Err() == nil {
		err = c.unreached("cannot be reached", err)
	}
	return err
}

// The names under which a call's key and its trace travel.
const (
	metaKey         = "io.github.holdfast-agents/key"
	metaTraceparent = "traceparent"
)

// answer is what came of a request.
type answer struct {
	raw json.RawMessage
	err error
}

// flight is a request on its way. It outlives the context of the call's run only if it is
// held open for a person's answer.
type flight struct {
	x      *session
	r      *wire.Request
	cancel context.CancelCauseFunc
	done   chan answer
	news   chan progress
	flood  chan struct{} // closed when the server has told too much of its progress
	asks   chan elicitation
	forget func()
}

// send sends a request of the call and waits for its result, within the bounds of the
// options. The error says what it means for the call.
func (c *calling) send(ctx context.Context, method string, members map[string]any) (json.RawMessage, error) {
	for began := time.Now(); ; {
		f, err := c.launch(ctx, method, members)
		if err != nil {
			return nil, err
		}
		raw, err := c.land(ctx, f)
		// A request that met a connection at its end, and has not left, goes over the next one.
		if err == nil || f.r.Sent() || !f.x.dead() || ctx.Err() != nil || time.Since(began) > c.peer.o.Timeout ||
			c.connect(ctx) != nil {
			return raw, err
		}
	}
}

// launch sends a request of the call. Its headers are asked for again, because a call may
// outlive a token.
func (c *calling) launch(ctx context.Context, method string, members map[string]any) (*flight, error) {
	if headers := c.peer.o.CallHeaders; headers != nil {
		h, err := headers(ctx)
		if err != nil {
			return nil, err
		}
		c.header, c.secrets = h, c.secrets.with(h)
	}
	f := &flight{
		x:     c.x,
		r:     &wire.Request{Method: method, Header: c.header.Clone()},
		done:  make(chan answer, 1),
		news:  make(chan progress, 1),
		flood: make(chan struct{}),
		asks:  make(chan elicitation, 1),
	}
	if len(c.inHeaders) > 0 && method == "tools/call" {
		if f.r.Header == nil {
			f.r.Header = http.Header{}
		}
		setParamHeaders(f.r.Header, c.inHeaders, c.arguments)
	}
	release, err := c.x.turn(ctx, f.asks, c.peer.o.Timeout)
	if err != nil {
		return nil, c.failure(ctx, f.r, err)
	}
	var token string
	told := 0 // by the one goroutine that reads what the server says
	token, f.forget = c.x.token(func(p progress) {
		if told++; told == maxProgress {
			close(f.flood)
		}
		newest(f.news, p)
	})
	p := &params{members: members}
	p.Meta = sdk.Meta{"progressToken": token, metaKey: c.call.Key}
	if trace := c.peer.o.Traceparent; trace != nil {
		if parent := trace(ctx); parent != "" {
			p.Meta[metaTraceparent] = parent
		}
	}
	requested, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f.cancel = cancel
	if !c.peer.conn.start(func() {
		defer release()
		raw, err := f.x.request(requested, f.r, p)
		f.done <- answer{raw, err}
	}) {
		release()
		return nil, c.failure(ctx, f.r, errClosed)
	}
	return f, nil
}

// land waits for the answer to a request, or for a question that comes before it.
func (c *calling) land(ctx context.Context, f *flight) (json.RawMessage, error) {
	a, asked := c.wait(ctx, f)
	if asked != nil {
		return nil, c.hold(ctx, f, asked)
	}
	f.forget()
	f.cancel(nil)
	if a.err != nil {
		f.r.GiveUp()
		if raw := pagesFirst(a.err); raw != nil && !f.x.modern() {
			return c.secrets.strip(raw), nil
		}
		return nil, c.failure(ctx, f.r, a.err)
	}
	return c.secrets.strip(a.raw), nil
}

// wait waits for the answer, as long as there is progress and the call's time is not up. It
// does not wait for the request to end after that.
func (c *calling) wait(ctx context.Context, f *flight) (answer, *elicitation) {
	o := &c.peer.o
	reached := math.Inf(-1)
	idle := time.NewTimer(o.Timeout)
	defer idle.Stop()
	all := time.NewTimer(time.Until(c.until))
	defer all.Stop()
	for {
		select {
		case a := <-f.done:
			return a, nil
		case p := <-f.news:
			// Saying the same again and again is no progress.
			if n, err := p.Progress.Float64(); err == nil && n > reached {
				reached = n
				idle.Reset(o.Timeout)
			}
			c.notices.add(ctx, p)
		case <-f.flood:
			f.cancel(errFlood)
			return answer{err: errFlood}, nil
		case e := <-f.asks:
			return answer{}, &e
		case <-c.notices.due():
			c.notices.show(ctx)
		case <-ctx.Done():
			f.cancel(context.Cause(ctx))
			return answer{err: context.Cause(ctx)}, nil
		case <-idle.C:
			f.cancel(errTimeout)
			return answer{err: fmt.Errorf("%w: none came within %s", errTimeout, o.Timeout)}, nil
		case <-all.C:
			f.cancel(errTimeout)
			return answer{err: fmt.Errorf("%w: a call may take %s", errTimeout, o.MaxDuration)}, nil
		}
	}
}
