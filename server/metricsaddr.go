package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Metrics on an address of their own, which only the network of the operators reaches.

// metricsServer serves /metrics, and nothing else.
type metricsServer struct {
	http     *http.Server
	listener net.Listener
	served   chan error
}

// serveMetrics listens on an address of its own, unless that is empty.
func serveMetrics(ctx context.Context, addr string, metrics http.Handler, log *slog.Logger) (*metricsServer, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for the metrics: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	m := &metricsServer{listener: l, served: make(chan error, 1), http: &http.Server{
		Handler:        mux,
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   time.Minute,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}}
	go func() { m.served <- m.http.Serve(l) }()
	log.Info("metrics", "addr", l.Addr().String())
	return m, nil
}

// stop ends what serveMetrics began; m may be nil.
func (m *metricsServer) stop(ctx context.Context) error {
	if m == nil {
		return nil
	}
	err := m.http.Shutdown(ctx)
	if e := <-m.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
