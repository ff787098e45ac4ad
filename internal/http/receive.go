package http

// How a body is received: whether a request may have one, how long it may take to arrive,
// and how much memory all bodies together may take. A deadline of the whole request
// (http.Server.ReadTimeout) would not do: it would end streams.

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/door"
)

// The defaults of Config.BodyTimeout, and of Config.MaxBodies as a multiple of MaxBody.
const (
	bodyTimeout = 30 * time.Second
	maxBodies   = 16
)

// receiver receives the bodies of requests.
type receiver struct {
	most     int64         // bytes of one body
	timeout  time.Duration // for a body to arrive
	memory   *memory       // of all bodies
	turns    *turns        // to decode them
	awaiting func(r *http.Request, waits bool)
	unread   func(*http.Request)
}

// admit refuses the body of a request that should have none, and gives any other a
// deadline, on every route and before anybody is authenticated: net/http reads what a
// handler leaves of a body before it answers.
func (in *receiver) admit(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	rec := recorderOf(r)
	// A server without deadlines (a test's recorder) works too, so errors are ignored.
	_ = rec.rc.SetReadDeadline(time.Now().Add(in.timeout))
	rec.body = &timedBody{
		ReadCloser: r.Body,
		rc:         rec.rc,
		came:       func() { in.awaiting(r, false) },
		shared:     r.ProtoMajor >= 2,
	}
	r.Body = rec.body
	in.awaiting(r, true)
	switch r.Method {
	case http.MethodDelete:
		if strings.HasPrefix(r.URL.Path, routeCopilotKit+"/") {
			return nil // CopilotKit sends the agent in it
		}
		fallthrough
	case http.MethodGet, http.MethodHead:
		return invalid("", r.Method+" takes no body.", "Send the request without one.")
	}
	return nil
}

// read receives a JSON body. Its memory counts until the request ends, or until
// letGo.
func (in *receiver) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !door.IsJSON(r) {
		return nil, door.NotJSON()
	}
	body, err := in.receive(r, http.MaxBytesReader(w, r.Body, in.most))
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
		return nil, holdfast.Errorf(codes.BodyTimeout, "The body did not arrive within %s.", in.timeout).
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
func (in *receiver) receive(r *http.Request, from io.Reader) ([]byte, error) {
	rec := recorderOf(r)
	var body []byte
	for {
		if len(body) == cap(body) {
			size := max(firstRead, 2*cap(body))
			if r.ContentLength > 0 {
				size = min(size, int(r.ContentLength)+1) // with one byte more, the end is seen
			}
			size = max(size, len(body)+1)
			if !in.memory.take(rec.who.Tenant, int64(size-cap(body))) {
				return nil, holdfast.Errorf(codes.TooManyBodies, "This server is receiving as many "+
					"requests as it has memory for.").
					WithHint("Send the request again after the time in Retry-After.")
			}
			rec.held += int64(size - cap(body))
			body = append(make([]byte, 0, size), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// letGo says that nothing of the request's body is kept any more.
func (in *receiver) letGo(rec *recorder) {
	if rec.held > 0 {
		in.memory.give(rec.who.Tenant, rec.held)
		rec.held = 0
	}
}

// lingering is how long a connection stays open after a response to a request whose body was
// not read to its end. Until then what comes is thrown away: a client that is still sending
// finds the response when it has been closed in an orderly way, and not when it was cut.
const lingering = time.Second

// linger ends a connection soon, if its request is answered and part of it is still to come.
func (in *receiver) linger(rec *recorder, r *http.Request) {
	if rec.body == nil || rec.body.ended || rec.body.shared {
		return
	}
	// As in admit, errors are ignored.
	_ = rec.rc.SetReadDeadline(time.Now().Add(lingering))
	in.unread(r)
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
