// Package streamhttp connects the MCP client to servers over streamable HTTP, in all
// revisions of the protocol.
//
// The SDK's transport for this ends the session, and with it every call in progress, at
// many an answer that concerns one request only; it follows redirects, reads bodies of any
// size and does not say whether a request was sent. This one answers for each request alone.
package streamhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Options say how to reach a server.
type Options struct {
	// URL is the server's endpoint.
	URL string
	// Client makes the requests. It must not follow redirects, and must have no timeout.
	Client *http.Client
	// Header are the headers of every request.
	Header http.Header
	// Redact takes secrets out of what errors quote of an answer; nil if there are none.
	Redact func(string) string
	// Limit bounds an answer, or a message of a stream, in bytes.
	Limit int
	// Listening is called when the server's own messages are read from now on, or it turned
	// out that there are none.
	Listening func()
	// Stale is called when the connection should be replaced. Gone means that the server
	// has forgotten the session, so that every further request will fail.
	Stale func(err error, gone bool)
}

// Conn is a connection to a server. It implements the SDK's Connection.
type Conn struct {
	o      Options
	inbox  *wire.Inbox
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	closeOnce sync.Once
	telling   chan struct{} // has a place for each message without an answer on its way

	mu      sync.Mutex
	closed  bool
	version string // negotiated by initialize; empty in the stateless revisions
	session string
}

// New returns a connection. It sends nothing.
func New(o Options) *Conn {
	c := &Conn{o: o, inbox: wire.NewInbox(), telling: make(chan struct{}, maxTelling)}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// errClosed is the cause of requests that end because the connection is closed.
var errClosed = errors.New("the connection is closed")

// Read implements the SDK's Connection.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) { return c.inbox.Read(ctx) }

// SessionID implements the SDK's Connection.
func (c *Conn) SessionID() string {
	_, session := c.negotiated()
	return session
}

func (c *Conn) negotiated() (version, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.session
}

// Write implements the SDK's Connection. It does not wait for the answer to a call; if
// there is none, the call's response is an error that says why.
func (c *Conn) Write(ctx context.Context, m jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	r, ok := m.(*jsonrpc.Request)
	if ok && r.IsCall() {
		if !c.start(func() { c.exchange(ctx, r, body) }) {
			return errClosed
		}
		return nil
	}
	if !ok || r.Method != "notifications/initialized" {
		if version, _ := c.negotiated(); version != "" { // else the end of a request's stream says all
			c.tell(ctx, m, body)
		}
		return nil
	}
	res, err := c.post(ctx, m, body, nil)
	if err != nil {
		return err
	}
	res.Body.Close()
	c.start(c.listen)
	return nil
}

// start runs f in a goroutine that the connection waits for; false if it is closed.
func (c *Conn) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(f)
	}
	return !c.closed
}

// tellTimeout bounds messages that need no answer, and maxTelling how many of them are on
// their way: a server could ask for any number of refusals.
const (
	tellTimeout = 10 * time.Second
	maxTelling  = 64
)

// tell sends a message that needs no answer; nobody would use its error.
func (c *Conn) tell(ctx context.Context, m jsonrpc.Message, body []byte) {
	select {
	case c.telling <- struct{}{}:
	default:
		return
	}
	if !c.start(func() {
		defer func() { <-c.telling }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		defer cancel()
		if res, err := c.post(ctx, m, body, nil); err == nil {
			res.Body.Close()
		}
	}) {
		<-c.telling
	}
}

// exchange sends a call and hands on its answer or, in its place, the error.
func (c *Conn) exchange(ctx context.Context, r *jsonrpc.Request, body []byte) {
	if err := c.answered(ctx, r, body); err != nil {
		c.inbox.Put(&jsonrpc.Response{ID: r.ID, Error: err})
	}
}

// errNoAnswer is the error of a call whose stream ended too early.
var errNoAnswer = errors.New("the answer was cut off")

// answered sends a call and hands on the messages that come back. It returns an error if
// the answer was not among them.
func (c *Conn) answered(ctx context.Context, r *jsonrpc.Request, body []byte) error {
	res, err := c.post(ctx, r, body, wire.RequestFrom(ctx))
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return c.follow(ctx, r, res)
	case kind != "application/json":
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // more than is quoted
		return fmt.Errorf("%w: it has the content type %q: %s", wire.ErrUnreadable, kind, c.quote(text))
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, int64(c.o.Limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errNoAnswer, plain(err))
	case len(data) > c.o.Limit:
		return wire.ErrTooLarge
	}
	done, err := c.take(r, data, res)
	if err == nil && !done {
		err = fmt.Errorf("%w: it answers another request", wire.ErrUnreadable)
	}
	return err
}

// quote quotes an answer, whose secrets must not be cut in two before they are taken out.
func (c *Conn) quote(text []byte) string {
	if c.o.Redact != nil {
		text = []byte(c.o.Redact(string(text)))
	}
	return wire.Quote(text)
}

// take hands on a message; true if it is the answer to the request.
func (c *Conn) take(r *jsonrpc.Request, data []byte, res *http.Response) (bool, error) {
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return false, fmt.Errorf("%w: %s", wire.ErrUnreadable, c.quote(data))
	}
	answer, ok := m.(*jsonrpc.Response)
	if !ok {
		return false, c.put(m)
	}
	if r == nil || answer.ID != r.ID {
		return false, nil // of nobody
	}
	if r.Method == "initialize" && answer.Error == nil {
		var said struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(answer.Result, &said)
		c.mu.Lock()
		c.version, c.session = said.Version, res.Header.Get(headerSession)
		c.mu.Unlock()
	}
	return true, c.put(m)
}

func (c *Conn) put(m jsonrpc.Message) error {
	if !c.inbox.Put(m) {
		return errClosed
	}
	return nil
}

// post sends a message and returns the answer's beginning, if its status is success.
func (c *Conn) post(ctx context.Context, m jsonrpc.Message, body []byte, record *wire.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	done := func() { stop(); cancel(nil) }
	if record != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			// A further attempt is made only if nothing was written in the one before.
			GetConn: func(string) { record.Again() },
			// From here on it is written, even if it is given up before its headers are.
			GotConn:      func(httptrace.GotConnInfo) { record.Begin() },
			WroteHeaders: func() { record.Begin(); record.Written() },
		})
	}
	h := c.header()
	if record != nil {
		for name, values := range record.Header {
			h[name] = values
		}
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	c.setProtocolHeaders(h, m)
	return c.do(ctx, done, http.MethodPost, bytes.NewReader(body), h)
}

// header returns the headers of every request.
func (c *Conn) header() http.Header {
	if h := c.o.Header.Clone(); h != nil {
		return h
	}
	return http.Header{}
}

// do makes a request. It calls done when the body of the answer is closed, or at once if
// there is none to read.
func (c *Conn) do(
	ctx context.Context, done func(), method string, body io.Reader, h http.Header,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.o.URL, body)
	if err != nil {
		done()
		return nil, err
	}
	req.Header = h
	if h.Get("Idempotency-Key") != "" || h.Get("X-Idempotency-Key") != "" {
		req.GetBody = nil // or the HTTP client would take leave to send it twice by itself
	}
	res, err := c.o.Client.Do(req)
	if err != nil {
		if err = plain(err); ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		done()
		return nil, err
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		res.Body = &closing{res.Body, done}
		return res, nil
	}
	defer done()
	defer res.Body.Close()
	return nil, c.refused(res)
}

// closing is a body that tells when it is closed.
type closing struct {
	io.ReadCloser
	done func()
}

// Close implements [io.Closer].
func (b *closing) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// plain takes the URL, which may hold secrets, out of an error of the HTTP client.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// maxRefusal bounds what is read of an answer that reports an error.
const maxRefusal = 64 << 10

// refused returns the error of an answer whose status is no success.
func (c *Conn) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	e := &wire.StatusError{Status: res.StatusCode}
	if m, err := jsonrpc.DecodeMessage(body); err == nil {
		if r, ok := m.(*jsonrpc.Response); ok && r.Error != nil {
			errors.As(r.Error, &e.RPC)
		}
	}
	if s, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	if _, session := c.negotiated(); session != "" && forgotten(e) {
		c.o.Stale(fmt.Errorf("the server has forgotten the session: %w", e), true)
	}
	return e
}

// forgotten reports whether an answer in a session says that there is no such session. The
// protocol has 404 for it; older npm servers send 400 with a code of their own.
func forgotten(e *wire.StatusError) bool {
	const codeServer = -32000
	return e.Status == http.StatusNotFound ||
		e.Status == http.StatusBadRequest && (e.RPC == nil || e.RPC.Code == codeServer)
}

// Put hands a message to the connection's reader, as if the server had sent it.
func (c *Conn) Put(m jsonrpc.Message) bool { return c.inbox.Put(m) }

// Close implements the SDK's Connection. It ends every request, and does not wait: see
// [Conn.Wait].
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		if _, session := c.negotiated(); session != "" {
			c.start(func() { c.delete(session) })
		}
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.inbox.Close(nil)
		c.cancel(errClosed)
	})
	return nil
}

// delete ends the session at the server. Nobody needs to know whether it worked.
func (c *Conn) delete(session string) {
	const timeout = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	h := c.header()
	h.Set(headerSession, session)
	if res, err := c.do(ctx, cancel, http.MethodDelete, nil, h); err == nil {
		res.Body.Close()
	}
}

// Wait waits until a closed connection's requests have ended.
func (c *Conn) Wait() { c.wg.Wait() }
