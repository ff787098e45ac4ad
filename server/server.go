// Package server puts a durable agent server together: store, engine, HTTP.
//
//	err := server.ListenAndServe(server.Config{Agents: []holdfast.Agent{{Name: "helper", Model: m}}})
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/metrics"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// GracePeriod is how long a shutdown waits for work in progress.
const GracePeriod = 25 * time.Second

// Server is a durable agent server. Make one with [New], then call Start and, in the
// end, Shutdown.
type Server struct {
	cfg       Config // without what served has
	served    atomic.Pointer[servedAgents]
	reloads   sync.Mutex // one Reload at a time
	store     store.Store
	level     store.Level
	metrics   *metrics.Metrics
	observer  observe.Observer
	limits    *quota.Limiter
	heavy     *turns.Turns // of large bodies and of checks
	circuits  *circuit.Circuits
	engine    *owner.Engine
	keeper    *upkeep.Keeper
	now       clock.Shared // for stamps
	audited   *audited
	streams   *keyedStreams
	side      *metricsServer // nil without Config.MetricsAddr, or before Start
	handler   http.Handler
	front     *front
	opening   *opening
	reached   string // host and port by which this machine reaches the server
	operators *operators
	tools     sync.WaitGroup // tools that have outlived their timeout
	prices    prices
	replays   sync.Map // what wakes each replay, by the [store.ThreadKey] of its fork
}

// LocalPrincipal is the one user that every caller is without Authenticate.
func LocalPrincipal() holdfast.Principal { return holdfast.Principal{Tenant: "default", User: "local"} }

// Handler returns the server's HTTP handler, for use in another server. The engine
// must have been started with Start or StartEngine.
func (s *Server) Handler() http.Handler { return s.handler }

// StartEngine starts everything but the listener.
func (s *Server) StartEngine(ctx context.Context) error {
	if err := s.engine.Start(ctx); err != nil {
		return err
	}
	s.keeper.Start()
	s.circuits.Start()
	s.opening.open()
	return nil
}

// Listen listens on Config.Addr before the server can be used: the page is there, requests wait
// until [Server.Start] has started it, and GET /readyz says that it is starting. A program
// calls it before it waits for what its agents need, like MCP servers; Start listens without it
// too.
func (s *Server) Listen(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", s.cfg.Addr, err)
	}
	s.reached = l.Addr().String()
	s.side, err = serveMetrics(ctx, s.cfg.MetricsAddr, s.metrics.Handler(s.cfg.Gatherer), s.cfg.Log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.front.listen(l)
	s.front.serve(s.opening.handler(s.handler))
	return nil
}

// Start listens, unless [Server.Listen] has done it, and starts to serve and to recover runs. It
// returns once the server is ready for use.
func (s *Server) Start(ctx context.Context) error {
	if s.front.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	if err := s.StartEngine(ctx); err != nil {
		s.opening.open() // for what waits, which is told
		return errors.Join(err, s.front.shutdown(ctx), s.side.stop(ctx))
	}
	s.operators.announce(s.Addr())
	return nil
}

// Addr returns the address in use, once the server listens.
func (s *Server) Addr() string {
	if s.front.listener == nil {
		return s.cfg.Addr
	}
	return s.front.listener.Addr().String()
}
