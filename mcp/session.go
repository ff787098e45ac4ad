package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// transport is a connection of ours to a server.
type transport interface {
	sdk.Connection
	// Put hands a message to the connection's reader.
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
	asker atomic.Pointer[chan elicitation]

	tokens   atomic.Int64
	progress sync.Map // progress tokens to func(progress)
}

// extensionTasks is the name of the extension that lets a server answer with a task.
const extensionTasks = "io.modelcontextprotocol/tasks"

// connect connects to the server over t, which it owns.
func connect(ctx context.Context, t transport, h *hello) (_ *session, err error) {
	x := &session{
		transport: t,
		log:       h.log,
		events:    h.events,
		ended:     make(chan struct{}),
		hello:     h,
		born:      time.Now(),
		turns:     make(chan struct{}, 1),
	}
	extensions := map[string]any{extensionTasks: map[string]any{}}
	if h.apps {
		extensions[extensionApps] = capabilityApps()
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "holdfast", Version: "1"}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), // what it would log is in its errors
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{
				Form: &sdk.FormElicitationCapabilities{},
				URL:  &sdk.URLElicitationCapabilities{},
			},
			Extensions: extensions,
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
	h.put = t.Put
	defer h.stop()
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
		h.events.follow() // there is nothing to wait for
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
			x.hello.sending(r)
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
			x.hello.received(m)
			return m, nil
		case *jsonrpc.Request:
			switch {
			case m.Method == "ping" && m.IsCall(): // the SDK would queue any number of them
				_ = x.transport.Write(ctx, &jsonrpc.Response{ID: m.ID, Result: json.RawMessage("{}")})
			case m.Method == "elicitation/create" && m.IsCall() && x.hello.elicits:
				x.elicited(ctx, m)
			case m.IsCall():
				none := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not supported by this client"}
				_ = x.transport.Write(ctx, &jsonrpc.Response{ID: m.ID, Error: none})
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

// elicitation is a question of a server that waits.
type elicitation struct {
	id     jsonrpc.ID
	params json.RawMessage
}

// turn waits for the request's turn if the server may ask in the middle of one, since nothing
// says which of several asks. The caller has to call release.
func (x *session) turn(ctx context.Context, asks chan elicitation, timeout time.Duration) (release func(), err error) {
	if !x.hello.elicits || x.modern() {
		return func() {}, nil
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case x.turns <- struct{}{}:
		x.asker.Store(&asks)
		return func() {
			x.asker.Store(nil)
			<-x.turns
		}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-x.ended:
		return nil, errors.New("the connection has ended")
	case <-t.C:
		return nil, errBusy
	}
}

// errBusy is the error of a call that did not get its turn.
var errBusy = errors.New("another call of this server has not ended")

// elicited hands a question to the call that it is of.
func (x *session) elicited(ctx context.Context, m *jsonrpc.Request) {
	if asks := x.asker.Load(); asks != nil {
		select {
		case *asks <- elicitation{id: m.ID, params: m.Params}:
			return
		default: // it asks a second thing before the first is answered
		}
	}
	x.reply(ctx, m.ID, json.RawMessage(answerCancel))
}

const answerCancel = `{"action":"cancel"}`

// reply answers a server's question.
func (x *session) reply(ctx context.Context, id jsonrpc.ID, answer json.RawMessage) {
	if err := x.transport.Write(ctx, &jsonrpc.Response{ID: id, Result: answer}); err != nil {
		x.log.Warn("an answer did not reach an MCP server", "error", err)
	}
}

// progress is a server's news of a call.
type progress struct {
	Progress json.Number `json:"progress"`
	Total    json.Number `json:"total,omitempty"`
	Message  string      `json:"message,omitempty"`
}

// progressed hands news to the call that they are of.
func (x *session) progressed(raw json.RawMessage) {
	var said struct {
		Token json.RawMessage `json:"progressToken"`
		progress
	}
	var token string
	if json.Unmarshal(raw, &said) != nil || json.Unmarshal(said.Token, &token) != nil {
		return
	}
	if f, ok := x.progress.Load(token); ok {
		said.Message = shorten(said.Message, 1000)
		f.(func(progress))(said.progress)
	}
}
