package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// How frames are written: as Server-Sent Events, and what is kept for a flush and what is
// not.

// sse writes frames.
type sse struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// unmadeError is the error of a frame whose next piece could not be made.
type unmadeError struct{ err error }

func (e *unmadeError) Error() string { return e.err.Error() }

// frames adds frames to what the next flush sends; without any, a keep-alive. Large events do
// not wait for the flush.
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
	if f.Framed {
		return s.add(f.Data)
	}
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

// flush sends everything. A client that does not read is disconnected (see [exchange.Recorder]); the
// run does not wait for it.
func (s *sse) flush() error {
	if err := s.write(); err != nil {
		return err
	}
	return s.rc.Flush()
}
