package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// A request and its response, in memory.

// request is a request of a client's.
type request struct {
	method, path string
	query        url.Values
	after        store.Cursor // that it has; zero if it does not say
	body         any          // nil without one
	kind         string       // the media type of the body, if it is not JSON
	result       bool         // wants one object instead of a stream
}

// made returns it as a server gets it.
func (r *request) made(ctx context.Context) *http.Request {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			panic(err) // it is ours
		}
		body = bytes.NewReader(data)
	}
	target := url.URL{Path: r.path, RawQuery: r.query.Encode()}
	made := httptest.NewRequestWithContext(ctx, r.method, target.String(), body)
	if r.body != nil {
		made.Header.Set("Content-Type", cmp.Or(r.kind, "application/json"))
	}
	if r.result {
		made.Header.Set("Accept", "application/json")
	}
	if r.after.Number > 0 {
		made.Header.Set("Last-Event-ID", r.after.String())
	}
	return made
}

// response is what a client gets. It takes everything at once.
type response struct {
	ctx    context.Context
	dead   func() bool // the server is
	header http.Header
	code   int
	begun  func(http.Header) // called when a stream begins
	see    func(*agui.Frame) // called with each of its frames
	buf    []byte            // what it has not read
}

// Header implements [http.ResponseWriter].
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter].
func (r *response) WriteHeader(code int) {
	r.code = code
	if r.streams() && r.cut() == nil {
		r.begun(r.header)
	}
}

// cut returns why nothing arrives any more; nil if it does. Nobody hears a dead process.
func (r *response) cut() error {
	if r.dead() {
		return net.ErrClosed
	}
	return r.ctx.Err()
}

func (r *response) streams() bool {
	return r.code == http.StatusOK && r.header.Get("Content-Type") == "text/event-stream"
}

// Write implements [http.ResponseWriter].
func (r *response) Write(b []byte) (int, error) {
	if err := r.cut(); err != nil {
		return 0, err
	}
	r.buf = append(r.buf, b...)
	for r.streams() {
		event, rest, whole := bytes.Cut(r.buf, []byte("\n\n"))
		if !whole {
			break
		}
		if f := frameOf(event); f != nil {
			r.see(f)
		}
		if err := r.cut(); err != nil {
			return 0, err // it has left
		}
		r.buf = rest
	}
	return len(b), nil
}

// Flush, SetReadDeadline and SetWriteDeadline are what [http.ResponseController] looks for.
func (r *response) Flush()                           {}
func (r *response) SetReadDeadline(time.Time) error  { return nil }
func (r *response) SetWriteDeadline(time.Time) error { return nil }

// frameOf reads an event of a stream; nil for a comment.
func frameOf(event []byte) *agui.Frame {
	var f agui.Frame
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		if id, is := bytes.CutPrefix(line, []byte("id: ")); is {
			f.ID = string(id)
		} else if data, is := bytes.CutPrefix(line, []byte("data: ")); is {
			f.Data = bytes.Clone(data)
		}
	}
	if f.Data == nil {
		return nil
	}
	return &f
}

// codeOf returns the code of an error.
func codeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return holdfast.AsError(err).Code
}

// asked is who calls the store, in a context.
type asked struct{}

// as returns a context whose calls of the store bear a name.
func as(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, asked{}, name)
}
