package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Questions of the older revisions: the server asks while the call goes on, and waits. The
// run ends with the question all the same, so the request is held open in this process until
// the answer comes or the server is told that there is none.

// elicitation is a question of a server that waits.
type elicitation struct {
	id     jsonrpc.ID
	params json.RawMessage
}

// held is a request that is held open.
type held struct {
	f     *flight
	id    jsonrpc.ID // of the question; invalid if the server was told that there is no answer
	timer *time.Timer
}

// keptLate is how long the result of a call is kept whose answer is late.
const keptLate = 10 * time.Minute

// turn waits for the request's turn if the server may ask in the middle of one, since nothing
// says which of several asks. The caller has to call release.
func (x *session) turn(ctx context.Context, f *flight, timeout time.Duration) (release func(), err error) {
	if !x.hello.elicits || x.modern() {
		return func() {}, nil
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case x.turns <- struct{}{}:
		x.asker.Store(f)
		return func() {
			x.asker.Store(nil)
			<-x.turns
		}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-x.ended:
		return nil, errors.New("the connection has ended")
	case <-t.C:
		return nil, errBusy
	}
}

// errBusy is the error of a call that did not get its turn.
var errBusy = errors.New("another call of this server has not ended")

// elicited hands a question to the call that it is of.
func (x *session) elicited(ctx context.Context, m *jsonrpc.Request) {
	if f := x.asker.Load(); f != nil {
		select {
		case f.asks <- elicitation{id: m.ID, params: m.Params}:
			return
		default: // it asks a second thing before the first is answered
		}
	}
	x.reply(ctx, m.ID, json.RawMessage(answerCancel))
}

const answerCancel = `{"action":"cancel"}`

// reply answers a server's question.
func (x *session) reply(ctx context.Context, id jsonrpc.ID, answer json.RawMessage) {
	if err := x.transport.Write(ctx, &jsonrpc.Response{ID: id, Result: answer}); err != nil {
		x.log.Warn("an answer did not reach an MCP server", "error", err)
	}
}

// hold keeps a request open and returns the server's question.
func (c *calling) hold(ctx context.Context, f *flight, e *elicitation) error {
	s := c.t.server
	questions, err := c.questionsOf(
		inputRequests{"elicitation": {Method: "elicitation/create", Params: c.secrets.strip(e.params)}},
	)
	if err == nil {
		c.kept.Round++
		c.kept.Questions, c.kept.Answers, c.kept.Held = questions, nil, rand.Text()
		err = c.keep(ctx)
	}
	if err != nil {
		f.x.reply(ctx, e.id, json.RawMessage(answerCancel))
		f.forget()
		f.cancel(err)
		return err
	}
	name, h := c.kept.Held, &held{f: f, id: e.id}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.timer = time.AfterFunc(s.o.ElicitationWait, func() { s.late(name) })
	s.held[name] = h
	return c.ask("")
}

// late tells a server that there is no answer, and later forgets the request.
func (s *Server) late(name string) {
	s.mu.Lock()
	h := s.held[name]
	if h == nil || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	id := h.id
	if id.IsValid() {
		h.id = jsonrpc.ID{}
		h.timer = time.AfterFunc(keptLate, func() { s.late(name) })
	} else {
		delete(s.held, name)
	}
	s.mu.Unlock()
	if id.IsValid() {
		h.f.x.reply(s.ctx, id, json.RawMessage(answerCancel))
		return
	}
	h.f.forget()
	h.f.cancel(errTimeout)
}

// unhold passes the answer on to the request that was held open, and returns it. It returns
// nil if the request is gone and the call may be made anew.
func (c *calling) unhold(ctx context.Context) (*flight, error) {
	s := c.t.server
	s.mu.Lock()
	h := s.held[c.kept.Held]
	delete(s.held, c.kept.Held)
	if h != nil {
		h.timer.Stop()
	}
	s.mu.Unlock()
	if h == nil && c.once() {
		return nil, c.lost("its server was waiting for an answer, and the connection to it is gone", nil)
	}
	answers := c.kept.Answers
	c.kept = kept{Round: c.kept.Round}
	if h == nil {
		c.kept.Round = 0
		return nil, c.keep(ctx)
	}
	// A call that keeps nothing is in doubt after a crash, as it should be from here on. One
	// that keeps something is made again, so what is kept says that an answer is on its way.
	c.kept.Sending = true
	if err := c.keep(ctx); err != nil {
		h.f.cancel(err)
		return nil, err
	}
	c.x = h.f.x
	if !h.id.IsValid() {
		return h.f, holdfast.Notify(
			ctx,
			"mcp.answer_late",
			map[string]any{"tool": c.t.spec.Name, "toolCallId": c.call.ID},
		)
	}
	for _, answer := range answers {
		c.x.reply(ctx, h.id, answer)
	}
	return h.f, nil
}
