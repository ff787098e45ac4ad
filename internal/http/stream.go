package http

import (
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

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
		s.frames(frames)
		if s.flush() != nil {
			return // the client went away or does not read; it may come back
		}
	}
}

// cut ends a stream whose run continues. Stock clients take a clean end for success,
// so they get a RUN_ERROR, which is a notice, not a record, and has no id.
func (h *handler) cut(s *sse, r *http.Request, err error, resumes bool) {
	e := holdfast.AsError(err)
	if e.Code != codes.StreamCut && r.Context().Err() == nil {
		h.Log.Warn("stream cut", "path", r.URL.Path, "error", err)
	}
	if !resumes {
		ev := agui.RunError{Message: e.Message, Code: e.Code}
		s.frames([]agui.Frame{{Data: ev.AppendJSON(nil)}})
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

// frames appends frames to what the next flush sends; without any, a keep-alive.
func (s *sse) frames(frames []agui.Frame) {
	if len(frames) == 0 {
		s.buf = append(s.buf, ": keep-alive\n\n"...)
		return
	}
	for i := range frames {
		s.buf = appendFrame(s.buf, frames[i])
	}
}

func appendFrame(b []byte, f agui.Frame) []byte {
	if f.ID != "" {
		b = append(b, "id: "...)
		b = append(b, f.ID...)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, f.Data...)
	return append(b, "\n\n"...)
}

// maxBuffer is the largest buffer that a connection keeps between two flushes.
const maxBuffer = 16 << 10

// flush sends everything. A client that does not read is disconnected (see
// recorder); the run does not wait for it.
func (s *sse) flush() error {
	_, err := s.w.Write(s.buf)
	if cap(s.buf) > maxBuffer {
		s.buf = nil
	} else {
		s.buf = s.buf[:0]
	}
	if err != nil {
		return err
	}
	return s.rc.Flush()
}
