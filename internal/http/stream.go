package http

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// How a stream is written: its header, its frames as Server-Sent Events, what is kept for
// a flush and what is not, and how it ends if something goes wrong.

// opened is a stream that counts as open. It ends with its request or, if it has detached,
// later.
type opened struct {
	ctx      context.Context // of the reply
	cancel   context.CancelFunc
	unlink   func() bool // from the request's context
	closed   func()      // it no longer counts
	may      bool        // detach
	detached bool
}

// open counts a stream of the caller. A stream that may outlive its request has a context
// of its own, which also does not keep the request in memory.
func (h *handler) open(r *http.Request, who holdfast.Principal) (*opened, error) {
	closed, err := h.Streams.OpenStream(who)
	if err != nil {
		return nil, err
	}
	if !h.Detached.takes(r) {
		return &opened{ctx: r.Context(), cancel: func() {}, unlink: func() bool { return true }, closed: closed}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &opened{ctx: ctx, cancel: cancel, unlink: context.AfterFunc(r.Context(), cancel), closed: closed, may: true}, nil
}

// close is deferred by the handler.
func (o *opened) close() {
	if !o.detached {
		o.unlink()
		o.end()
	}
}

// end ends the stream.
func (o *opened) end() {
	o.cancel()
	o.closed()
}

// outlive says that the stream goes on without its request.
func (o *opened) outlive() {
	o.unlink()
	o.unlink, o.detached = nil, true
}

// ending is how a stream ends.
type ending int

const (
	whole  ending = iota
	gone          // the client has left, or does not read
	broken        // an event, or what follows it, cannot be sent
)

// streaming is a reply on its way to a client.
type streaming struct {
	*sse
	*opened
	log     *slog.Logger
	reply   *agui.Reply
	path    string
	resumes bool // the client comes back by itself after a clean end

	// These are guarded by the recorder's writing.
	over  bool
	taken *detached // nil unless the stream has detached
	line  line      // if it has
}

// stream sends a reply as Server-Sent Events. Frames are separated by LF only, because
// the official client understands nothing else; comments keep proxies from closing an
// idle connection; everything available is sent with one flush.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, o *opened, reply *agui.Reply) {
	header := w.Header()
	header.Set("Content-Type", typeSSE)
	// no-transform and X-Accel-Buffering keep proxies from buffering or compressing
	// the stream.
	header.Set("Cache-Control", "no-cache, no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Holdfast-Run", reply.RunID)
	w.WriteHeader(http.StatusOK)
	s := &streaming{
		sse: &sse{w: w, rc: http.NewResponseController(w)}, opened: o, log: h.Log, reply: reply,
		path: r.URL.Path, resumes: r.Header.Get("Holdfast-Resume") == "1",
	}
	h.Observer.StreamOpened()
	var end ending
	if o.may {
		end = h.inBackground(r, s)
	} else {
		end = s.guarded()
	}
	if s.opened.detached {
		return
	}
	h.Observer.StreamClosed()
	if end == broken {
		// Cutting the connection is the only way left to show that the response is incomplete.
		panic(http.ErrAbortHandler)
	}
}

// guarded sends the stream; a panic breaks it.
func (s *streaming) guarded() (end ending) {
	defer func() {
		if p := recover(); p != nil {
			panicked(s.log, s.path, p)
			end = broken
		}
	}()
	return s.send()
}

// send sends the stream to its end.
func (s *streaming) send() ending {
	if s.resumes {
		// Random, so that clients do not all come back at once after a restart.
		s.buf = append(s.buf, "retry: "...)
		s.buf = strconv.AppendInt(s.buf, 250+rand.Int64N(750), 10)
		s.buf = append(s.buf, "\n\n"...)
	}
	s.buf = append(s.buf, ": holdfast\n\n"...)
	for frames, err := range s.reply.Frames {
		if err != nil {
			return s.cut(err)
		}
		if err := s.frames(frames); err != nil {
			return s.broken(err)
		}
		if s.flush() != nil {
			return gone // it may come back
		}
		if len(frames) == 0 {
			s.buf = nil // nothing was sent for a while, and that may go on
		}
	}
	return whole
}

// broken returns how a stream ends in the middle of an event.
func (s *streaming) broken(err error) ending {
	var unmade *unmadeError
	if !errors.As(err, &unmade) || s.ctx.Err() != nil {
		return gone
	}
	s.log.Warn("stream cut in the middle of an event", "path", s.path, "error", unmade.err)
	return broken
}

// cut ends a stream whose run continues. Stock clients take a clean end for success,
// so they get a RUN_ERROR, which is a notice, not a record, and has no id.
func (s *streaming) cut(err error) ending {
	e := holdfast.AsError(err)
	if e.Code != codes.StreamCut && s.ctx.Err() == nil {
		s.log.Warn("stream cut", "path", s.path, "error", err)
	}
	if !s.resumes {
		// As below, an error means that the client has gone.
		_ = s.frames([]agui.Frame{{Data: agui.NewRunError(e).AppendJSON(nil)}})
	}
	// An error means that the client has gone, and nothing can be done for it.
	if s.flush() != nil {
		return gone
	}
	return whole
}

// sse writes frames.
type sse struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// unmadeError is the error of a frame whose next piece could not be made.
type unmadeError struct{ err error }

func (e *unmadeError) Error() string { return e.err.Error() }

// frames adds frames to what the next flush sends; without any, a keep-alive. What is
// large does not wait for the flush.
func (s *sse) frames(frames []agui.Frame) error {
	if len(frames) == 0 {
		return s.add([]byte(": keep-alive\n\n"))
	}
	for i := range frames {
		if err := s.frame(&frames[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sse) frame(f *agui.Frame) error {
	if f.ID != "" {
		s.buf = append(append(append(s.buf, "id: "...), f.ID...), '\n')
	}
	s.buf = append(s.buf, "data: "...)
	if err := s.add(f.Data); err != nil {
		return err
	}
	if f.Pieces != nil {
		for piece, err := range f.Pieces {
			if err != nil {
				return &unmadeError{err}
			}
			if err := s.add(piece); err != nil {
				return err
			}
		}
	}
	return s.add([]byte("\n\n"))
}

// maxBuffer is about the largest buffer of a connection.
const maxBuffer = 16 << 10

// add adds bytes to the buffer or, if that would grow too large, writes both.
func (s *sse) add(b []byte) error {
	if len(s.buf)+len(b) <= maxBuffer {
		s.buf = append(s.buf, b...)
		return nil
	}
	if err := s.write(); err != nil {
		return err
	}
	if len(b) <= maxBuffer {
		s.buf = append(s.buf, b...)
		return nil
	}
	_, err := s.w.Write(b)
	return err
}

// write writes the buffer.
func (s *sse) write() error {
	_, err := s.w.Write(s.buf)
	if cap(s.buf) > maxBuffer {
		s.buf = nil
	} else {
		s.buf = s.buf[:0]
	}
	return err
}

// flush sends everything. A client that does not read is disconnected (see recorder); the
// run does not wait for it.
func (s *sse) flush() error {
	if err := s.write(); err != nil {
		return err
	}
	return s.rc.Flush()
}
