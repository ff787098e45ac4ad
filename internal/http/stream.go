package http

import (
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

// stream sends a reply as Server-Sent Events. Frames are separated by LF only, because
// the official client understands nothing else; comments keep proxies from closing an
// idle connection; everything available is sent with one flush.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, reply *agui.Reply) {
	h.Observer.StreamOpened()
	defer h.Observer.StreamClosed()
	s := &sse{w: w, rc: http.NewResponseController(w)}
	header := w.Header()
	header.Set("Content-Type", typeSSE)
	// no-transform and X-Accel-Buffering keep proxies from buffering or compressing
	// the stream.
	header.Set("Cache-Control", "no-cache, no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Holdfast-Run", reply.RunID)
	w.WriteHeader(http.StatusOK)
	resumes := r.Header.Get("Holdfast-Resume") == "1"
	if resumes {
		// Random, so that clients do not all come back at once after a restart.
		s.buf = append(s.buf, "retry: "...)
		s.buf = strconv.AppendInt(s.buf, 250+rand.Int64N(750), 10)
		s.buf = append(s.buf, "\n\n"...)
	}
	s.buf = append(s.buf, ": holdfast\n\n"...)
	for frames, err := range reply.Frames {
		if err != nil {
			h.cut(s, r, err, resumes)
			return
		}
		if err := s.frames(frames); err != nil {
			broken(r, h.Log, err)
			return
		}
		if s.flush() != nil {
			return // the client went away or does not read; it may come back
		}
	}
}

// broken ends a stream in the middle of an event. If that is not because of the client,
// cutting the connection is the only way left to show that the event is incomplete.
func broken(r *http.Request, log *slog.Logger, err error) {
	var unmade *unmadeError
	if !errors.As(err, &unmade) || r.Context().Err() != nil {
		return
	}
	log.Warn("stream cut in the middle of an event", "path", r.URL.Path, "error", unmade.err)
	panic(http.ErrAbortHandler)
}

// cut ends a stream whose run continues. Stock clients take a clean end for success,
// so they get a RUN_ERROR, which is a notice, not a record, and has no id.
func (h *handler) cut(s *sse, r *http.Request, err error, resumes bool) {
	e := holdfast.AsError(err)
	if e.Code != codes.StreamCut && r.Context().Err() == nil {
		h.Log.Warn("stream cut", "path", r.URL.Path, "error", err)
	}
	if !resumes {
		// As below, an error means that the client has gone.
		_ = s.frames([]agui.Frame{{Data: agui.NewRunError(e).AppendJSON(nil)}})
	}
	// An error means that the client has gone, and nothing can be done for it.
	_ = s.flush()
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
