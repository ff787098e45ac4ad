package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/agui"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Clients speak HTTP: their requests go through the server's handler, and they read
// Server-Sent Events. There is no network between them, and no net/http server.

// web returns the server's handler.
func (s *server) web() http.Handler {
	return hfhttp.New(hfhttp.Config{
		Authorize:    func(context.Context, holdfast.Principal, access.Action, string) error { return nil },
		Authenticate: func(*http.Request) (holdfast.Principal, error) { return alice, nil },
		Runs:         runs{s.engine},
		Cancel:       s.engine.Cancel,
		Threads:      s.keeper,
		History:      s.keeper,
		Upkeep:       s.keeper,
		Titles:       upkeep.Titles{Keeper: s.keeper},
		Calls:        calls{s.engine},
		Ready:        s.engine.Ready,
		MaxBody:      1 << 20,
		WriteTimeout: 10 * time.Second,
		Log:          slog.New(slog.DiscardHandler),
		Now:          s.stamp,
	})
}

// runs are the engine's. Side runs have a route of CopilotKit's, which is left out.
type runs struct{ engine *owner.Engine }

func (r runs) Post(
	ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput,
) (*agui.Reply, error) {
	in.Side = strings.HasPrefix(in.ThreadID, aside)
	return r.engine.Post(ctx, who, agent, in)
}

func (r runs) Events(
	ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor, d agui.Dialect,
) (*agui.Reply, error) {
	return r.engine.Events(ctx, who, thread, run, after, d)
}

func (r runs) Attach(ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect) (*agui.Reply, error) {
	return r.engine.Attach(ctx, who, thread, d)
}

// calls takes the results of calls that are finished from outside.
type calls struct{ engine *owner.Engine }

func (c calls) Finish(
	ctx context.Context, who holdfast.Principal, thread, call string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Who, f.Thread, f.Call = who, thread, call
	return c.engine.Finish(ctx, f)
}

func (c calls) Expects(ctx context.Context, token string) error {
	return owner.Expects(ctx, c.engine, token)
}

func (c calls) FinishByToken(
	ctx context.Context, token string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Token = token
	return c.engine.Finish(ctx, f)
}

// finishing returns a result as the engine takes it.
func finishing(r threads.OutsideResult) owner.OutsideResult {
	if !r.Failed {
		return owner.OutsideResult{Result: r.Result}
	}
	text, _ := json.Marshal(r.Error) // a string can always be encoded
	return owner.OutsideResult{Result: text, Failed: true}
}

// request is a request of a client's.
type request struct {
	method, path string
	query        url.Values
	after        store.Cursor // that it has; zero if it does not say
	body         any          // nil without one
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
		made.Header.Set("Content-Type", "application/json")
	}
	if r.after.Number > 0 {
		made.Header.Set("Last-Event-ID", r.after.String())
	}
	return made
}

// response is what a client gets. It takes everything at once.
type response struct {
	ctx    context.Context
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
	if r.streams() {
		r.begun(r.header)
	}
}

func (r *response) streams() bool {
	return r.code == http.StatusOK && r.header.Get("Content-Type") == "text/event-stream"
}

// Write implements [http.ResponseWriter].
func (r *response) Write(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
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
		if err := r.ctx.Err(); err != nil {
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

// serve has a server answer a request. It returns the code of its error; "ok" if there is none.
func (s *server) serve(r *request, w *response) (code string) {
	w.header = http.Header{}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // which cuts the connection
			code = "cut"
		default:
			panic(p)
		}
	}()
	s.handler.ServeHTTP(w, r.made(w.ctx))
	if w.code < http.StatusBadRequest {
		return "ok"
	}
	var body exchange.ErrorBody
	if err := json.Unmarshal(w.buf, &body); err != nil || body.Error.Code == "" {
		return fmt.Sprintf("status %d", w.code)
	}
	return body.Error.Code
}

// ask makes a request whose answer is no stream, and reads the answer into v.
func (s *server) ask(ctx context.Context, r *request, v any) (code string) {
	w := &response{ctx: ctx}
	code = s.serve(r, w)
	if code == "ok" && v != nil && w.code != http.StatusNoContent {
		if err := json.Unmarshal(w.buf, v); err != nil {
			return err.Error()
		}
	}
	return code
}
