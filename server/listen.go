package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

// ListenAndServe makes a server and runs it until the process receives SIGINT or
// SIGTERM; a second signal ends the process at once.
func ListenAndServe(cfg Config) error {
	s, err := New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return s.ListenAndServe(ctx)
}

// ListenAndServe starts the server, logs where it listens, waits until ctx is done or the listener fails, and
// shuts down within GracePeriod.
func (s *Server) ListenAndServe(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.cfg.Log.Info("listening", "url", "http://"+s.Addr())
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-s.front.ended:
		s.front.ended <- http.ErrServerClosed
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), GracePeriod)
	defer cancel()
	return errors.Join(failed, s.Shutdown(grace))
}
