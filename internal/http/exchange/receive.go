package exchange

// How a body is received: whether a request may have one, how long it may take to arrive,
// and how much memory all bodies together may take. A deadline of the whole request
// (http.Server.ReadTimeout) would not do: it would end streams.

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/door"
	"github.com/holdfast-agents/holdfast/internal/turns"
)

// Bodies says how the bodies of requests are received. Every member must be set.
type Bodies struct {
	// Most bounds one body, MostMedia one of which more than half is media, if that is more, and
	// All those that are being received and decoded; in bytes.
	Most, MostMedia, All int64
	// Heavy are the turns of large bodies.
	Heavy *turns.Turns
	// Timeout is how long a body may take to arrive.
	Timeout time.Duration
	// Deletes is how the paths begin at which a DELETE may have a body.
	Deletes string
	// Awaiting is called when the server begins to wait for the body of a request, and when
	// all of it has come.
	Awaiting func(r *http.Request, waits bool)
	// Unread is called when a request has been answered whose body was not read to its end.
	Unread func(*http.Request)
}

// Receiver receives the bodies of requests.
type Receiver struct {
	Bodies
	memory *memory
	// Turns are those to decode a body.
	Turns *Turns
}

// NewReceiver returns what receives bodies as b says.
func NewReceiver(b Bodies) *Receiver {
	return &Receiver{Bodies: b, memory: newMemory(b.All), Turns: &Turns{b.Heavy}}
}

// Admit refuses the body of a request that should have none, and gives any other a
// deadline, on every route and before anybody is authenticated: net/http reads what a
// handler leaves of a body before it answers.
func (in *Receiver) Admit(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	rec := RecorderOf(r)
	// A server without deadlines (a test's recorder) works too, so errors are ignored.
	_ = rec.Controller.SetReadDeadline(time.Now().Add(in.Timeout))
	rec.body = &timedBody{
		ReadCloser: r.Body,
		rc:         rec.Controller,
		came:       func() { in.Awaiting(r, false) },
		shared:     r.ProtoMajor >= 2,
	}
	r.Body = rec.body
	in.Awaiting(r, true)
	switch r.Method {
	case http.MethodDelete:
		if strings.HasPrefix(r.URL.Path, in.Deletes) {
			return nil
		}
		fallthrough
	case http.MethodGet, http.MethodHead:
		return Invalid("", r.Method+" takes no body.", "Send the request without one.")
	}
	return nil
}

// Read receives a JSON body. Its memory counts until the request ends, or until
// LetGo.
func (in *Receiver) Read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !door.IsJSON(r) {
		return nil, door.NotJSON()
	}
	return in.read(w, r)
}

// ReadAs is Read for a body of one of these media types. It returns which one it is.
func (in *Receiver) ReadAs(
	w http.ResponseWriter, r *http.Request, kinds ...string,
) (body []byte, kind string, err error) {
	kind, _, err = mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(kinds, kind) {
		return nil, "", holdfast.Errorf(codes.UnsupportedMediaType, "The body must be one of %s.",
			strings.Join(kinds, ", ")).
			WithHint("Say which with Content-Type.")
	}
	body, err = in.read(w, r)
	return body, kind, err
}

// read reads a body of a media type that is known to be right.
func (in *Receiver) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := in.receive(r, http.MaxBytesReader(w, r.Body, max(in.Most, in.MostMedia)))
	if err == nil {
		return body, nil
	}
	var coded *holdfast.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &coded):
		return nil, err
	case errors.As(err, &tooLarge):
		return nil, holdfast.Errorf(codes.PayloadTooLarge, "The body is larger than %d bytes.", tooLarge.Limit).
			WithHint("Send only what is new: the server keeps the history of a thread.").With("limit", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, holdfast.Errorf(codes.BodyTimeout, "The body did not arrive within %s.", in.Timeout).
			WithHint("Send the request again on a faster connection, or send less: the server keeps " +
				"the history of a thread.").
			Wrap(err)
	}
	return nil, holdfast.Errorf(codes.InvalidInput, "The body could not be read to its end.").
		WithHint("Send the request again.").Wrap(err)
}

// firstRead is the memory that a body gets before anything of it has arrived. It grows
// with what arrives, whatever length was announced.
const firstRead = 4 << 10

// receive reads a body to its end. Each piece of memory counts before it is taken.
func (in *Receiver) receive(r *http.Request, from io.Reader) ([]byte, error) {
	rec := RecorderOf(r)
	var body []byte
	size := bulk{most: in.Most, mostMedia: in.MostMedia}
	for {
		if len(body) == cap(body) {
			room := max(firstRead, 2*cap(body))
			if r.ContentLength > 0 {
				room = min(room, int(r.ContentLength)+1) // with one byte more, the end is seen
			}
			room = max(room, len(body)+1)
			if !in.memory.take(rec.Caller.Tenant, int64(room-cap(body))) {
				return nil, holdfast.Errorf(codes.TooManyBodies,
					"This server is receiving as many requests as it has memory for.").
					WithHint("Send the request again after the time in Retry-After.")
			}
			rec.held += int64(room - cap(body))
			body = append(make([]byte, 0, room), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, size.admits(body, true)
		}
		if err == nil {
			err = size.admits(body, false)
		}
		if err != nil {
			return nil, err
		}
	}
}

// LetGo says that nothing of the request's body is kept any more.
func (in *Receiver) LetGo(rec *Recorder) {
	if rec.held > 0 {
		in.memory.give(rec.Caller.Tenant, rec.held)
		rec.held = 0
	}
}

// Lingering is how long a connection stays open after a response to a request whose body was
// not read to its end. Until then what comes is thrown away: a client that is still sending
// finds the response when it has been closed in an orderly way, and not when it was cut.
const Lingering = time.Second

// linger ends a connection soon, if its request is answered and part of it is still to come.
func (in *Receiver) linger(rec *Recorder, r *http.Request) {
	if !rec.Unread() || rec.body.shared {
		return
	}
	// As in Admit, errors are ignored.
	_ = rec.Controller.SetReadDeadline(time.Now().Add(Lingering))
	in.Unread(r)
}

// memory counts the bytes of the bodies that are being received and decoded. One tenant
// may have half of them.
type memory struct {
	most int64

	mu      sync.Mutex
	all     int64
	tenants map[string]int64
}

func newMemory(most int64) *memory { return &memory{most: most, tenants: map[string]int64{}} }

// take counts n more bytes of a tenant, if there is room for them.
func (m *memory) take(tenant string, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all+n > m.most || m.tenants[tenant]+n > m.most/2 {
		return false
	}
	m.all += n
	m.tenants[tenant] += n
	return true
}

// give takes back n bytes of the tenant.
func (m *memory) give(tenant string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all -= n
	if m.tenants[tenant] -= n; m.tenants[tenant] <= 0 {
		delete(m.tenants, tenant)
	}
}
