package exchange

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
)

// How a response is sent, whatever it is: with what status, how slowly a client may take it,
// and what its end needs to know of its request.

// Recorder records the status, and bounds how slowly a client may take a response. A
// client that does not read is disconnected after the timeout, whatever is sent to it. One
// that reads slowly may use up the same time, bit by bit: what counts is the time that
// writes wait, and each byte that is taken earns back what it may take at the lowest rate.
// So a stream that has nothing to send can stay open for ever, and one that is taken more
// slowly than it may be is cut, however steadily it is read.
type Recorder struct {
	// Writing is held while something is written, and while a stream detaches.
	Writing sync.Mutex
	http.ResponseWriter
	// Controller sets the deadlines of the connection.
	Controller *http.ResponseController
	timeout    time.Duration // 0: no bounds
	rate       int64         // bytes per second; 0: none
	code       int
	flushed    bool // everything

	patience time.Duration // how long writes may still wait
	waited   time.Time     // when the last write ended; patience grows again from then on
	until    time.Time     // the connection's deadline

	began       clock.Moment
	thread, run string // see NoteRun
	errCode     string // see noteError
	gone        bool
	// Caller is on whose behalf the request is; empty before authentication.
	Caller   holdfast.Principal
	body     *timedBody // nil without a body
	held     int64      // bytes of the body that count; see receive
	detached bool       // the response goes on without its handler; see package detached
}

// Unwrap lets [http.ResponseController] find the deadlines.
func (rec *Recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *Recorder) WriteHeader(code int) {
	if rec.code == 0 && code >= http.StatusOK {
		rec.begin(code)
	}
	rec.ResponseWriter.WriteHeader(code)
}

// begin notes the status, just before the header is sent.
func (rec *Recorder) begin(code int) {
	rec.code = code
	if rec.Unread() && !rec.body.shared {
		rec.Header().Set("Connection", "close")
	}
}

// maxWrite is how many bytes are written at a time.
const maxWrite = 64 << 10

// lastFlush is about what net/http may still have to send when a request ends.
const lastFlush = 4 << 10

func (rec *Recorder) Write(b []byte) (int, error) {
	rec.Writing.Lock()
	defer rec.Writing.Unlock()
	if rec.code == 0 {
		rec.begin(http.StatusOK)
	}
	rec.flushed = false
	done := 0
	for {
		piece := b[done:min(len(b), done+maxWrite)]
		began := rec.deadline(len(piece))
		n, err := rec.ResponseWriter.Write(piece)
		rec.spend(began)
		done += n
		if err != nil || done >= len(b) {
			return done, err
		}
	}
}

// FlushError is what [http.ResponseController] calls: what waits in a small write waits
// here.
func (rec *Recorder) FlushError() error {
	rec.Writing.Lock()
	defer rec.Writing.Unlock()
	began := rec.deadline(0)
	defer rec.spend(began)
	err := rec.Controller.Flush()
	rec.flushed = err == nil
	return err
}

// deadline bounds all writes from now on, of which the next one has n bytes; the last one
// is net/http's own flush, and then net/http removes it before the next request. It
// returns the time.
func (rec *Recorder) deadline(n int) time.Time {
	now := time.Now()
	if rec.timeout <= 0 {
		return now
	}
	if rec.waited.IsZero() || rec.rate <= 0 {
		rec.patience = rec.timeout
	} else {
		earned := time.Duration(float64(n) / float64(rec.rate) * float64(time.Second))
		rec.patience = min(rec.timeout, rec.patience+now.Sub(rec.waited)+earned)
	}
	// A stream writes often, and a deadline that is a little early does as well.
	if left := rec.until.Sub(now); left > rec.patience || left < rec.patience-rec.timeout/16 {
		rec.until = now.Add(rec.patience)
		// A writer without deadlines (a test's recorder) works too, so errors are ignored.
		_ = rec.Controller.SetWriteDeadline(rec.until)
	}
	return now
}

// spend counts the time that a write has waited.
func (rec *Recorder) spend(began time.Time) {
	rec.waited = time.Now()
	rec.patience = max(0, rec.patience-rec.waited.Sub(began))
}

// Silent reports whether everything has been sent, and nothing for a while. The caller holds
// Writing.
func (rec *Recorder) Silent(while time.Duration) bool {
	return rec.flushed && time.Since(rec.waited) >= while
}

// Unread reports whether part of the request's body is still to come.
func (rec *Recorder) Unread() bool { return rec.body != nil && !rec.body.ended }

// Detach goes on writing to another connection than the handler's, and lets go of all that
// belongs to the request. The caller holds Writing.
func (rec *Recorder) Detach(to http.ResponseWriter) {
	rec.ResponseWriter, rec.Controller, rec.body, rec.detached = to, http.NewResponseController(to), nil, true
	rec.thread, rec.run = strings.Clone(rec.thread), strings.Clone(rec.run) // they may be parts of a body
}

// statusClientClosed is nginx's status for a client that did not wait; it is never sent.
const statusClientClosed = 499

func (rec *Recorder) status(r *http.Request) int {
	switch {
	case rec.gone:
		return statusClientClosed
	case rec.code != 0:
		return rec.code
	case r.Context().Err() != nil:
		return statusClientClosed
	}
	return http.StatusOK
}

type recorderKey struct{}

// RecorderOf returns the recorder of the request's response, which Observe has made.
func RecorderOf(r *http.Request) *Recorder {
	return r.Context().Value(recorderKey{}).(*Recorder)
}

// timedBody is a body that must arrive before a deadline. Once it was read to its end, the
// deadline is gone, because what follows may take as long as it needs. Otherwise it stays
// until the response is made, and then becomes a short one (see linger): whatever else is
// read from the connection is still that body. A response that begins
// before the end of the body says that the connection is not used again, so that net/http
// sends it without waiting for the rest. With HTTP/2 net/http does not wait, and the
// connection is also that of other requests.
type timedBody struct {
	io.ReadCloser
	rc     *http.ResponseController
	came   func() // is called at its end
	shared bool   // the connection is HTTP/2's
	ended  bool   // it was read to its end
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		b.came()
		_ = b.rc.SetReadDeadline(time.Time{}) // see Admit
	}
	return n, err
}

// NoteRun records which run the request is about, for its line in the log.
func NoteRun(r *http.Request, thread, run string) {
	rec := RecorderOf(r)
	rec.thread, rec.run = thread, run
}

// noteError records the code of the error that answers the request, and whether the client
// went away before it could be told.
func noteError(r *http.Request, code string, gone bool) {
	rec := RecorderOf(r)
	rec.errCode, rec.gone = code, gone
}
