// Package wire has the common parts of the MCP client's transports: a request that knows
// whether it was sent, the error of a request that the server has refused, and the queue of
// messages that a connection reads.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Where a request stands on its way to the server.
const (
	queued  int32 = iota // nothing of it has left
	sending              // a part of it may have left
	sent                 // all of it has left
	dropped              // it will never leave
)

// Request is a request on its way to a server. It travels in the context with which the
// request is written, and its transport notes how far it came.
type Request struct {
	// Method is the method's name.
	Method string
	// Header are further headers of the request, over HTTP.
	Header http.Header

	state atomic.Int32
}

type requestKey struct{}

// WithRequest returns a context that carries the request.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom returns the context's request; nil if it has none.
func RequestFrom(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// Begin notes that the request is about to be written; false if it was given up before. The
// methods do nothing for a nil request.
func (r *Request) Begin() bool {
	if r == nil {
		return true
	}
	r.state.CompareAndSwap(queued, sending)
	return r.state.Load() != dropped
}

// Again notes that nothing of the request has left, and that it is tried once more.
func (r *Request) Again() {
	if r != nil {
		r.state.CompareAndSwap(sending, queued)
	}
}

// Written notes that all of the request has left.
func (r *Request) Written() {
	if r != nil {
		r.state.CompareAndSwap(sending, sent)
	}
}

// GiveUp keeps the request from leaving if it has not begun to.
func (r *Request) GiveUp() { r.state.CompareAndSwap(queued, dropped) }

// Sent reports whether the server may have received the request.
func (r *Request) Sent() bool {
	s := r.state.Load()
	return s == sending || s == sent
}

// StatusError is the error of a request that was answered with an HTTP status other than
// success.
type StatusError struct {
	Status int
	// RPC is the error in the answer's body; nil if there is none.
	RPC *jsonrpc.Error
	// RetryAfter is how long the server wants to be left alone; 0 if it does not say.
	RetryAfter time.Duration
}

// Error says what the server has answered.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answered with the status %d", e.Status)
	if t := http.StatusText(e.Status); t != "" {
		text += " (" + t + ")"
	}
	if e.RPC != nil {
		text += ": " + e.RPC.Message
	}
	return text
}

// Unwrap returns the JSON-RPC error, if there is one.
func (e *StatusError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// Refused reports whether the status means that the server has not started the request:
// a redirect, or an error of the client's, except for those that a server or a gateway
// sends when time is up.
func (e *StatusError) Refused() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusConflict, 499:
		return false
	}
	return e.Status >= 300 && e.Status < 500
}

// ErrTooLarge is the error of an answer that is larger than allowed. The server has
// finished the request.
var ErrTooLarge = errors.New("the answer is larger than allowed")

// ErrUnreadable is the error of an answer that is no JSON-RPC message.
var ErrUnreadable = errors.New("the answer cannot be read")

// Inbox is the queue of the messages that a connection has received.
type Inbox struct {
	messages chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once
	err      error
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox {
	return &Inbox{messages: make(chan jsonrpc.Message), closed: make(chan struct{})}
}

// Put hands a message to the reader; false if the inbox is closed.
func (b *Inbox) Put(m jsonrpc.Message) bool {
	select {
	case b.messages <- m:
		return true
	case <-b.closed:
		return false
	}
}

// Read returns the next message, or the error that the inbox was closed with.
func (b *Inbox) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-b.messages:
		return m, nil
	case <-b.closed:
		return nil, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends reading with the error; nil means [io.EOF]. Only the first call counts.
func (b *Inbox) Close(err error) {
	b.once.Do(func() {
		if b.err = err; err == nil {
			b.err = io.EOF
		}
		close(b.closed)
	})
}

// Closed is closed with the inbox.
func (b *Inbox) Closed() <-chan struct{} { return b.closed }

// Quote returns text of a server in one short line, for errors and the log.
func Quote(text []byte) string {
	const limit = 200
	if len(text) > limit {
		return fmt.Sprintf("%q…", text[:limit])
	}
	return fmt.Sprintf("%q", text)
}
