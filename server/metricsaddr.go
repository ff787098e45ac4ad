package server

import (
	"context"
	"errors"
	"fmt"
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

// startMetrics listens on Config.MetricsAddr, if it is set.
func (s *Server) startMetrics(ctx context.Context) error {
	if s.cfg.MetricsAddr == "" {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.MetricsAddr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s for the metrics: %w", s.cfg.MetricsAddr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler(s.cfg.Gatherer))
	m := &metricsServer{listener: l, served: make(chan error, 1), http: &http.Server{
		Handler:        mux,
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   time.Minute,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}}
	s.side = m
	go func() { m.served <- m.http.Serve(l) }()
	s.cfg.Log.Info("metrics", "addr", l.Addr().String())
	return nil
}

// stop ends what startMetrics began; m may be nil.
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

// metricsHandler is what GET /metrics serves on the server's own address; nil if the
// metrics have one of their own.
func (s *Server) metricsHandler() http.Handler {
	if s.cfg.MetricsAddr != "" {
		return nil
	}
	return s.metrics.Handler(s.cfg.Gatherer)
}
