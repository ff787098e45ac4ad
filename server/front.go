package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/connections"
	"github.com/holdfast-agents/holdfast/internal/metrics"
)

// front is a server that listens itself: its listener, and what serves the connections.
type front struct {
	most     int // connections
	of       connections.PerAddress
	metrics  *metrics.Metrics
	log      *slog.Logger
	http     *http.Server
	handling handling              // the requests that http handles
	detached *connections.Detached // streams whose connections http no longer has
	listener *connections.Listener // nil before it listens
	ended    chan error            // of the listener
	told     clock.Moment          // when the log last told of refused connections; Accept's alone
}

// idleTimeout is how long a connection may wait for its next request.
const idleTimeout = 2 * time.Minute

func newFront(most int, of connections.PerAddress, m *metrics.Metrics, log *slog.Logger) *front {
	f := &front{
		most:    most,
		of:      of,
		metrics: m,
		log:     log,
		ended:   make(chan error, 1),
	}
	f.http = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       f.connected,
	}
	f.detached = connections.NewDetached(idleTimeout, func(c net.Conn, state http.ConnState) {
		f.listener.State(c, state)
	}, func(c net.Conn, read []byte) { connections.ServeAgain(f.http, f.listener, c, read) })
	return f
}

// connected prepares a new connection. Its small send buffer keeps the kernel from buffering
// minutes of a stream for a client that does not read.
func (f *front) connected(ctx context.Context, c net.Conn) context.Context {
	if tcp, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		// With its default buffer the connection works too, so an error is ignored.
		_ = tcp.SetWriteBuffer(64 << 10)
	}
	return connections.WithSlot(f.detached.ConnContext(ctx), c)
}

// listen makes the connections of a listener the server's.
func (f *front) listen(l net.Listener) {
	f.listener = connections.New(l, f.most, f.of, f.metrics.ConnectionsChanged, f.refused)
	f.http.ConnState = f.listener.State
	f.http.RegisterOnShutdown(f.listener.Clear) // net/http waits for silent ones
}

// serve begins to serve them.
func (f *front) serve(h http.Handler) {
	f.http.Handler = f.handling.counted(h)
	go func() { f.ended <- f.http.Serve(f.listener) }()
}

// refused notes that a connection is closed because its address has too many. The log says so
// at most once a second, however many come.
func (f *front) refused(c net.Conn) {
	f.metrics.ConnectionRefused()
	if f.told.Ran() >= time.Second {
		f.told = clock.Now()
		f.log.Warn("connections of one address are refused: it has as many as settings.maxConnectionsPerAddress allows",
			"address", c.RemoteAddr().String(), "limit", f.of.Most)
	}
}

// shutdown ends all connections.
func (f *front) shutdown(ctx context.Context) error {
	err := errors.Join(f.detached.Shutdown(ctx), f.http.Shutdown(ctx))
	if err != nil {
		err = errors.Join(err, f.http.Close())
		cut, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutOffGrace)
		defer cancel()
		f.handling.wait(cut)
	}
	e := <-f.ended
	f.ended <- e // for a second caller of the end
	if !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
