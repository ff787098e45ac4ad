package http

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/connections"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// A stream from its header to its end, also if something goes wrong, and how it goes on
// without its handler once it is silent. The writing itself is in sse.go.

// Streams bounds the streams of each caller.
type Streams interface {
	// OpenStream counts a stream that is about to be opened. closed is called when it has
	// ended. An error says that the caller has too many.
	OpenStream(who holdfast.Principal) (closed func(), err error)
	// HoldBytes counts what an answer holds in memory. taken is called when its client has
	// taken it. An error says that there is no room.
	HoldBytes(who holdfast.Principal, bytes int64) (taken func(), err error)
}

// unlimited is the Streams of a server without limits.
type unlimited struct{}

func (unlimited) OpenStream(holdfast.Principal) (func(), error) { return func() {}, nil }

func (unlimited) HoldBytes(holdfast.Principal, int64) (func(), error) { return func() {}, nil }

// streamer streams replies to clients.
type streamer struct {
	streams  Streams
	detached *connections.Detached
	monitor  *exchange.Monitor
}

// opened is a stream that counts as open. It ends with its request or, if it has detached,
// later.
type opened struct {
	ctx      context.Context // of the reply
	cancel   context.CancelFunc
	unlink   func() bool // from the request's context
	closed   func()      // it no longer counts
	held     held
	may      bool // detach
	detached bool
}

// open counts a stream of the caller. A stream that may outlive its request has a context
// of its own, which also does not keep the request in memory.
func (o *streamer) open(r *http.Request, who holdfast.Principal) (*opened, error) {
	closed, err := o.streams.OpenStream(who)
	if err != nil {
		return nil, err
	}
	held := held{count: func(bytes int64) (func(), error) { return o.streams.HoldBytes(who, bytes) }}
	if exchange.RecorderOf(r).Unread() || !o.detached.Takes(r) {
		return &opened{
			ctx:    r.Context(),
			cancel: func() {},
			unlink: func() bool { return true },
			closed: closed,
			held:   held,
		}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &opened{
		ctx:    ctx,
		cancel: cancel,
		unlink: context.AfterFunc(r.Context(), cancel),
		closed: closed,
		held:   held,
		may:    true,
	}, nil
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
	o.held.letGo()
	o.closed()
}

// held is what a stream holds in memory until its client has taken it.
type held struct {
	count func(bytes int64) (taken func(), err error)
	taken func() // nil if nothing counts
}

// hold counts bytes in the place of those before. So few as any stream may buffer do not count.
func (m *held) hold(bytes int64) (err error) {
	m.letGo()
	if bytes > maxBuffer {
		m.taken, err = m.count(bytes)
	}
	return err
}

// letGo says that the client has taken what counted.
func (m *held) letGo() {
	if m.taken != nil {
		m.taken()
		m.taken = nil
	}
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

	// These are guarded by the recorder's Writing.
	over  bool
	taken *connections.DetachedConn // nil unless the stream has detached
	line  exchange.Line             // if it has
}

// answer sends what comes after the cursor that was asked for; no reply means that nothing does.
func (o *streamer) answer(w http.ResponseWriter, r *http.Request, of *opened, asked cursors, reply *agui.Reply) error {
	if reply == nil {
		// The run has ended and the client has all of it; 204 tells an EventSource not to
		// reconnect.
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if asked.inside {
		reply = reply.WithCursors()
	}
	return o.stream(w, r, of, reply)
}

// stream sends a reply as Server-Sent Events. Frames are separated by LF only, because
// the official client understands nothing else; comments keep proxies from closing an
// idle connection; everything available is sent with one flush.
//
// A stream that would begin with more than there is memory for is refused before it begins.
func (o *streamer) stream(w http.ResponseWriter, r *http.Request, of *opened, reply *agui.Reply) error {
	if err := of.held.hold(reply.Held); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", typeSSE)
	// no-transform and X-Accel-Buffering keep proxies from buffering or compressing
	// the stream.
	header.Set("Cache-Control", "no-cache, no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	nameRun(header, reply)
	w.WriteHeader(http.StatusOK)
	s := &streaming{
		sse:     &sse{w: w, rc: http.NewResponseController(w)},
		opened:  of,
		log:     o.monitor.Log,
		reply:   reply,
		path:    r.URL.Path,
		resumes: r.Header.Get("Holdfast-Resume") == "1",
	}
	o.monitor.Observer.StreamOpened()
	var end ending
	if of.may {
		end = s.inBackground(o, r)
	} else {
		end = s.guarded()
	}
	if s.opened.detached {
		return nil
	}
	o.monitor.Observer.StreamClosed()
	if end == broken {
		// Cutting the connection is the only way left to show that the response is incomplete.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// guarded sends the stream; a panic breaks it.
func (s *streaming) guarded() (end ending) {
	defer func() {
		if p := recover(); p != nil {
			exchange.LogPanic(s.log, s.path, p)
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
		if err := s.held.hold(agui.HeldBy(frames)); err != nil {
			return s.cut(err)
		}
		if err := s.frames(frames); err != nil {
			return s.broken(err)
		}
		if s.flush() != nil {
			return gone // it may come back
		}
		s.held.letGo()
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
// so they get an error, such as a RUN_ERROR, which is a notice, not a record, and has no id.
func (s *streaming) cut(err error) ending {
	e := holdfast.AsError(err)
	if e.Code != codes.StreamCut && s.ctx.Err() == nil {
		s.log.Warn("stream cut", "path", s.path, "error", err)
	}
	if !s.resumes {
		// As below, an error means that the client has gone.
		_ = s.frames(s.reply.Cut(e))
	}
	// An error means that the client has gone, and nothing can be done for it.
	if s.flush() != nil {
		return gone
	}
	return whole
}

// silence is how long a stream has nothing to send before it detaches. An answer that is
// being written does not pause for so long, and stays where its connection is looked after
// anyway.
const silence = time.Second

// inBackground sends a stream in a goroutine of its own, and looks now and then whether it
// is silent. If it then detaches, which s.opened tells, the handler can return; otherwise the
// result is how the stream has ended.
func (s *streaming) inBackground(o *streamer, r *http.Request) ending {
	rec := exchange.RecorderOf(r)
	ended := make(chan ending, 1)
	go func() {
		end := s.guarded()
		rec.Writing.Lock()
		s.over = true
		c := s.taken
		rec.Writing.Unlock()
		if c == nil {
			ended <- end
			return
		}
		o.monitor.Observer.StreamClosed()
		s.opened.end()
		o.monitor.Done(context.Background(), rec, s.line)
		c.End(end == whole)
	}()
	look := time.NewTicker(silence)
	defer look.Stop()
	for {
		select {
		case end := <-ended:
			return end
		case <-look.C:
		}
		done, tried := s.detach(o, rec, r)
		if done {
			return whole
		}
		if tried {
			look.Stop()
		}
	}
}

// detach lets a stream take its connection over if it is silent. It tries that once.
func (s *streaming) detach(o *streamer, rec *exchange.Recorder, r *http.Request) (done, tried bool) {
	if !rec.Writing.TryLock() {
		return false, false // it is writing
	}
	defer rec.Writing.Unlock()
	if s.over || !rec.Silent(silence) {
		return false, s.over
	}
	l := o.monitor.LineOf(rec, r)
	taken, rest := o.detached.Take(rec.Controller, r, s.cancel)
	if taken == nil {
		return false, true
	}
	s.taken, s.line = taken, l
	s.opened.outlive()
	rec.Detach(rest)
	return true, true
}

// nameRun says in a response which run it shows: in a header by which clients come back to the
// run or, for one that is stored nowhere, in another.
func nameRun(header http.Header, reply *agui.Reply) {
	if reply.Side {
		header.Set("Holdfast-Side-Run", reply.RunID)
		return
	}
	header.Set("Holdfast-Run", reply.RunID)
	nameOwner(header, reply.Owner)
}

// headerOwner says in an answer about a thread which process runs it. A process's id is random.
const headerOwner = "Holdfast-Owner"

// nameOwner sets it, if a process does.
func nameOwner(header http.Header, process string) {
	if process != "" {
		header.Set(headerOwner, process)
	}
}
