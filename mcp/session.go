package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/stdio"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session is one connection to a server. The SDK negotiates the revision, pairs answers
// with requests and sends cancellations; params and results go past it unread, because it
// reads numbers as float64, takes a task for an empty success and fails on content that it
// does not know.

// stateless is the first revision without sessions.
const stateless = "2026-07-28"

// transport is a connection of ours to a server.
type transport interface {
	sdk.Connection
	// Put hands a message to whoever reads the connection.
	Put(m jsonrpc.Message) bool
	// Wait waits until a closed connection has ended.
	Wait()
}

// session is one connection to a server.
type session struct {
	transport
	cs   *sdk.ClientSession
	log  *slog.Logger
	born time.Time
	// version is the negotiated revision.
	version string
	// events is where the connection reports what concerns the whole server.
	events *events
	// followed: changes of the list of tools were told before it was read.
	followed bool
	// ended is closed when no request can be made any more; err says why.
	ended chan struct{}
	err   error

	hello *hello
	// broken is the error with which reading ended, and deaf that it has; what ends the SDK's
	// part of the session takes a moment longer.
	broken atomic.Pointer[error]
	deaf   atomic.Bool

	// asker is the request that has its turn, if the server may ask in the middle of one.
	turns chan struct{}
	asker atomic.Pointer[flight]

	tokens   atomic.Int64
	progress sync.Map // progress tokens to func(progress)
}

// events are signals of a connection to its server's manager. None of them waits.
type events struct {
	relist chan struct{} // the list of tools has changed
	stale  chan error    // the connection should be replaced
	gone   chan error    // it must be
	// following is closed when changes of the list of tools are told from now on, or never.
	following  chan struct{}
	followOnce sync.Once
}

func newEvents() *events {
	return &events{
		relist:    make(chan struct{}, 1),
		stale:     make(chan error, 1),
		gone:      make(chan error, 1),
		following: make(chan struct{}),
	}
}

func (e *events) follow() { e.followOnce.Do(func() { close(e.following) }) }

func signal[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default: // one is enough
	}
}

func (e *events) replace(err error, gone bool) {
	if gone {
		signal(e.gone, err)
	} else {
		signal(e.stale, err)
	}
}

// methodAny stands for the method of a request of ours, because the SDK keeps the
// protocol's own methods for its types.
const methodAny = "holdfast/any"

// params are params of a request that the SDK does not read. It adds what each request says
// of the client.
type params struct {
	sdk.ParamsBase
	members map[string]any
}

// MarshalJSON implements [json.Marshaler].
func (p *params) MarshalJSON() ([]byte, error) {
	members := maps.Clone(p.members)
	if len(p.Meta) > 0 {
		members["_meta"] = p.Meta
	}
	return json.Marshal(members)
}

// result is a result as the server wrote it.
type result struct {
	sdk.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *result) UnmarshalJSON(data []byte) error {
	r.raw = append(json.RawMessage(nil), data...)
	return nil
}

// extensionTasks is the name of the extension that lets a server answer with a task.
const extensionTasks = "io.modelcontextprotocol/tasks"

// connect connects to the server over t, which it owns.
func connect(ctx context.Context, t transport, ev *events, h *hello, s *Server) (_ *session, err error) {
	x := &session{
		transport: t,
		log:       s.o.Log,
		events:    ev,
		ended:     make(chan struct{}),
		hello:     h,
		born:      time.Now(),
		turns:     make(chan struct{}, 1),
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "holdfast", Version: "1"}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), // what it would log is in its errors
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{
				Form: &sdk.FormElicitationCapabilities{},
				URL:  &sdk.URLElicitationCapabilities{},
			},
			Extensions: map[string]any{extensionTasks: map[string]any{}},
		},
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}, // subscribes; Read has the news
	})
	if err := sdk.AddSendingCustomMethod[*params, *result](client, methodAny); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while connecting: %v", p)
		}
		if err != nil {
			_ = t.Close()
			t.Wait()
		}
	}()
	defer x.hello.stop()
	options := &sdk.ClientSessionOptions{}
	if h.era.legacy {
		options.ProtocolVersion = "2025-11-25"
	}
	if x.cs, err = client.Connect(ctx, opened{x}, options); err != nil {
		if broken := x.broken.Load(); broken != nil && ctx.Err() == nil {
			err = *broken
		}
		return nil, x.hello.explain(err)
	}
	said := x.cs.InitializeResult()
	x.version = said.ProtocolVersion
	_, piped := t.(*stdio.Conn)
	if caps := said.Capabilities; piped && !x.modern() || caps == nil || caps.Tools == nil || !caps.Tools.ListChanged {
		ev.follow() // there is nothing to wait for
	}
	go func() {
		x.err = x.cs.Wait()
		if broken := x.broken.Load(); broken != nil {
			x.err = *broken
		}
		close(x.ended)
	}()
	return x, nil
}

// opened is a transport that has been connected before.
type opened struct{ c sdk.Connection }

// Connect implements the SDK's Transport.
func (o opened) Connect(context.Context) (sdk.Connection, error) { return o.c, nil }

// retire ends the session when the calls in progress have ended.
func (x *session) retire() {
	_ = x.cs.Close()
	x.Wait()
	<-x.ended
}

// dead reports whether no request can be made any more.
func (x *session) dead() bool {
	select {
	case <-x.ended:
		return true
	default:
		return x.deaf.Load()
	}
}

// modern reports whether the session's revision is one without sessions.
func (x *session) modern() bool { return x.version >= stateless }

// request sends a request and returns its result as the server wrote it.
func (x *session) request(ctx context.Context, r *wire.Request, p *params) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the MCP library: %v", p)
		}
	}()
	res, err := sdk.CallCustomMethod[*params, *result](wire.WithRequest(ctx, r), x.cs, methodAny, p)
	r.GiveUp()
	if err != nil {
		if why := errors.Unwrap(err); why != nil && strings.HasPrefix(err.Error(), "calling ") {
			err = why // without the name that only the SDK knows
		}
		return nil, err
	}
	return res.raw, nil
}

// token returns a token for the progress of a request, whose news f gets until forget is
// called. f must not wait.
func (x *session) token(f func(progress)) (token string, forget func()) {
	token = strconv.FormatInt(x.tokens.Add(1), 10)
	x.progress.Store(token, f)
	return token, func() { x.progress.Delete(token) }
}

// Write implements the SDK's Connection.
func (x *session) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok {
		switch r.Method {
		case methodAny:
			named := *r
			named.Method = wire.RequestFrom(ctx).Method
			m = &named
		case methodDiscover, methodListen:
			x.hello.sending(x, r)
		case methodInitialize:
			if err := x.hello.mayInitialize(); err != nil {
				return err
			}
			m = x.hello.initialize(r)
		}
	}
	return x.transport.Write(ctx, m)
}

// Read implements the SDK's Connection. The SDK gets answers; what the server asks or says by
// itself is dealt with here.
func (x *session) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := x.transport.Read(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				x.broken.Store(&err)
			}
			x.deaf.Store(true)
			return nil, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			x.hello.received(x, m)
			return m, nil
		case *jsonrpc.Request:
			switch {
			case m.Method == "ping" && m.IsCall(): // the SDK would queue any number of them
				_ = x.transport.Write(ctx, &jsonrpc.Response{ID: m.ID, Result: json.RawMessage("{}")})
			case m.Method == "elicitation/create" && m.IsCall() && x.hello.elicits:
				x.elicited(ctx, m)
			case m.IsCall():
				_ = x.transport.Write(
					ctx,
					&jsonrpc.Response{
						ID: m.ID,
						Error: &jsonrpc.Error{
							Code:    jsonrpc.CodeMethodNotFound,
							Message: "not supported by this client",
						},
					},
				)
			case m.Method == "notifications/tools/list_changed":
				signal(x.events.relist, struct{}{})
			case m.Method == "notifications/subscriptions/acknowledged":
				x.events.follow()
			case m.Method == "notifications/progress":
				x.progressed(m.Params)
			}
		}
	}
}
