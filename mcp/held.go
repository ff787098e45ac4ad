package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Questions of the older revisions: the server asks while the call goes on, and waits. The run
// still ends with the question, so the request is held open in this process until the answer
// comes or the server is told that there is none.

// held is a request that is held open.
type held struct {
	f     *flight
	id    jsonrpc.ID // of the question; invalid if the server was told that there is no answer
	timer *time.Timer
}

// holding has the requests that are held open, by the name that their call has kept.
type holding struct {
	ctx  context.Context // is done when the server is not used any more
	wait time.Duration   // for the answer

	mu  sync.Mutex
	all map[string]*held
}

func newHolding(ctx context.Context, wait time.Duration) *holding {
	return &holding{ctx: ctx, wait: wait, all: map[string]*held{}}
}

// add takes in a request.
func (s *holding) add(name string, h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.timer = time.AfterFunc(s.wait, func() { s.late(name) })
	s.all[name] = h
}

// take returns a request, which is not held any more; nil if it is gone.
func (s *holding) take(name string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[name]
	delete(s.all, name)
	if h != nil {
		h.timer.Stop()
	}
	return h
}

// keptLate is how long the result of a call is kept whose answer is late.
const keptLate = 10 * time.Minute

// late tells a server that there is no answer, and later forgets the request.
func (s *holding) late(name string) {
	s.mu.Lock()
	h := s.all[name]
	if h == nil || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	id := h.id
	if id.IsValid() {
		h.id = jsonrpc.ID{}
		h.timer = time.AfterFunc(keptLate, func() { s.late(name) })
	} else {
		delete(s.all, name)
	}
	s.mu.Unlock()
	if id.IsValid() {
		h.f.x.reply(s.ctx, id, json.RawMessage(answerCancel))
		return
	}
	h.f.forget()
	h.f.cancel(errTimeout)
}

// stop ends all waiting, when the server is not used any more.
func (s *holding) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.all {
		h.timer.Stop()
	}
}

// hold keeps a request open and returns the server's question.
func (c *calling) hold(ctx context.Context, f *flight, e *elicitation) error {
	asked := inputRequest{Method: "elicitation/create", Params: c.secrets.strip(e.params)}
	questions, err := c.questionsOf(inputRequests{"elicitation": asked})
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
	c.peer.held.add(c.kept.Held, &held{f: f, id: e.id})
	return c.ask("")
}

// unhold passes the answer on to the request that was held open, and returns it. It returns
// nil if the request is gone and the call may be made again.
func (c *calling) unhold(ctx context.Context) (*flight, error) {
	h := c.peer.held.take(c.kept.Held)
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
		late := map[string]any{"tool": c.spec.Name, "toolCallId": c.call.ID}
		return h.f, holdfast.Notify(ctx, "mcp.answer_late", late)
	}
	for _, answer := range answers {
		c.x.reply(ctx, h.id, answer)
	}
	return h.f, nil
}
