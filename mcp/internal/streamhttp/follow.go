package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Streams of messages: the answer to one call, and in the revisions with sessions the one
// stream with what the server says by itself. Streams whose events have ids can be taken up
// again where they were cut.

// The bounds of taking a stream up again.
const (
	resumeAttempts = 3 // in a row without a new event
	resumePause    = time.Second
	resumeMaxPause = 30 * time.Second
)

// stream is a stream of messages and the place in it.
type stream struct {
	c     *Conn
	r     *jsonrpc.Request // whose answer ends the stream; nil if nothing does
	last  string           // the id of the last event
	pause time.Duration    // that the server wants before the stream is taken up again
	fresh bool             // an event has come since it was taken up last
}

// errEnded is the error of a stream that has ended where no answer was.
var errEnded = errors.New("the stream has ended")

// follow hands on the messages of the answer to a call, until the answer was among them.
func (c *Conn) follow(ctx context.Context, r *jsonrpc.Request, res *http.Response) error {
	s := &stream{c: c, r: r}
	for failed := 0; ; {
		err := s.read(res)
		if !errors.Is(err, errEnded) {
			return err // or nil: it was answered
		}
		if s.fresh {
			failed = 0
		}
		for res = nil; res == nil; {
			if failed++; !s.resumable(err) || failed > resumeAttempts || ctx.Err() != nil {
				return fmt.Errorf("%w: %w", errNoAnswer, err)
			}
			res, err = s.resume(ctx)
		}
	}
}

// resumable reports whether it makes sense to take the stream up again after the error.
func (s *stream) resumable(err error) bool {
	_, session := s.c.negotiated()
	return s.last != "" && session != "" && !refuses(err)
}

// refuses reports whether an error is an answer that will not change.
func refuses(err error) bool {
	var status *wire.StatusError
	return errors.As(err, &status) && status.Refused()
}

// read hands on the messages of a body until it ends. It returns nil after the answer.
func (s *stream) read(res *http.Response) error {
	defer res.Body.Close()
	s.fresh = false
	in := newEvents(res.Body, s.c.o.Limit)
	for {
		ev, err := in.next()
		if err != nil {
			if errors.Is(err, wire.ErrTooLarge) {
				return err
			}
			return fmt.Errorf("%w: %w", errEnded, plain(err))
		}
		if s.fresh = true; ev.id != "" {
			s.last = ev.id
		}
		if ev.retry > 0 {
			s.pause = min(ev.retry, resumeMaxPause)
		}
		if len(ev.data) == 0 || ev.name != "" && ev.name != "message" {
			continue
		}
		done, err := s.c.take(s.r, ev.data, res)
		if err != nil || done {
			return err
		}
	}
}

// resume takes the stream up again after a pause.
func (s *stream) resume(ctx context.Context) (*http.Response, error) {
	t := time.NewTimer(max(s.pause, resumePause))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.c.ctx.Done():
		return nil, errClosed
	}
	return s.c.get(ctx, s.last)
}

// get opens a stream of messages.
func (c *Conn) get(ctx context.Context, last string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	h := c.header()
	h.Set("Accept", "text/event-stream")
	if last != "" {
		h.Set("Last-Event-ID", last)
	}
	c.setProtocolHeaders(h, nil)
	res, err := c.do(ctx, func() { stop(); cancel() }, http.MethodGet, nil, h)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		res.Body.Close()
		return nil, &wire.StatusError{Status: http.StatusMethodNotAllowed} // it has none
	}
	return res, nil
}

// listen hands on what the server says by itself. A server need not offer that; one that
// did and has stopped is to be connected to again.
func (c *Conn) listen() {
	s := &stream{c: c}
	res, err := c.get(c.ctx, "")
	c.o.Listening()
	for err == nil {
		if err = s.read(res); errors.Is(err, errEnded) {
			res, err = s.resume(c.ctx)
		}
	}
	if c.ctx.Err() == nil && !refuses(err) {
		c.o.Stale(fmt.Errorf("the server's stream of messages has ended: %w", err), false)
	}
}
