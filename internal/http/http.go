// Package http is the HTTP surface: URLs, status codes, limits, content negotiation
// and Server-Sent Events framing. A handler decodes the request, makes one call and
// encodes the result. It knows neither how a run advances nor what is stored.
package http

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/connections"
	"github.com/holdfast-agents/holdfast/internal/http/door"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/threads"
)

// The handler of all routes: what it needs from the rest of the server, and what
// happens to every request before and after its route.

// Config is what the handler needs. Every member must be set unless it is marked as
// optional.
type Config struct {
	// Authorize decides whether a caller may do something, to whatever agent or, if it is not
	// empty, to this one; its error refuses.
	Authorize authorizer
	// Runs streams runs.
	Runs Runs
	// Cancel asks a run to end.
	Cancel  func(ctx context.Context, who holdfast.Principal, thread, run string) (*threads.Info, error)
	Threads Threads
	History History
	Upkeep  Upkeep
	Titles  Titles
	States  States
	// Statuses lists threads by what they do.
	Statuses Statuses
	// Reloads finds what pages ask for that were loaded again, and Joins streams runs to them.
	Reloads Reloads
	Joins   Joins
	Calls   Calls
	// Inspect shows what is inside threads.
	Inspect Inspect
	// RunLog returns up to limit records of a run after a cursor (zero: from its first), without
	// waiting for more.
	RunLog runLog
	// Transfer exports and imports threads.
	Transfer Transfer
	// Agents lists the agents that can be run. Optional: without it the routes below
	// /agents that describe agents answer 404.
	Agents Agents
	// Console is for operators, and Others is how they read other users' threads. Optional:
	// without them nobody operates the server over HTTP.
	Console Console
	// Apps has the interfaces of tools.
	Apps   Apps
	Others Others
	// Demo is a server for trying out. Optional: nil for all others.
	Demo Demo
	// Streams counts the open streams of each caller. Optional: nil if they are not
	// limited.
	Streams Streams
	// Detached takes over the connections of silent streams. Optional: without it every
	// stream stays in its handler.
	Detached *connections.Detached
	// Awaiting is called when the server begins to wait for the body of a request, and when
	// all of it has come. Optional.
	Awaiting func(r *http.Request, waits bool)
	// Refused is called when a request waits for its refusal: until it has it, nobody needs its
	// connection. It returns what is closed when the connection is. Optional.
	Refused func(*http.Request) <-chan struct{}
	// Unread is called when a request has been answered whose body was not read to its end:
	// its connection ends soon. Optional.
	Unread func(*http.Request)
	// Ready reports why the server cannot serve; nil when it can.
	Ready func(ctx context.Context) error
	// Backup copies the store to a new directory. Optional: nil if it cannot be copied.
	Backup func(ctx context.Context, dir string) error
	// Operator identifies the operator who sent a request, for the log; "" if it was
	// somebody else. Optional: nil if nobody may operate the server over HTTP.
	Operator func(*http.Request) (who string, err error)
	// Audit logs what an operator has done. Optional.
	Audit func(ctx context.Context, who, action string, err error)
	// Authenticate identifies the caller. It never reads the body.
	Authenticate func(*http.Request) (holdfast.Principal, error)
	// Door is what a request must pass before its caller is authenticated. Its Methods are set
	// here.
	Door door.Door
	// UI serves GET / and GET /ui/*, with the unchanged path. Optional.
	UI http.Handler
	// Metrics serves GET /metrics. Optional.
	Metrics http.Handler
	// Observer observes requests and streams. Optional.
	Observer exchange.Observer
	// Version is the server's own version, for /openapi.json. Optional.
	Version string
	// MaxBody bounds a request's body, in bytes.
	MaxBody int64
	// MaxMediaBody bounds one of which more than half is media, in bytes. Optional: MaxBody.
	MaxMediaBody int64
	// MaxBodies bounds the bytes of all bodies that are being received and decoded; those of
	// one tenant may be half of it. Optional: 16 times MaxBody.
	MaxBodies int64
	// Heavy are the turns of requests with a large body. Optional: turns of their own.
	Heavy *turns.Turns
	// BodyTimeout is how long a request's body may take to arrive. Optional: 30 seconds.
	BodyTimeout time.Duration
	// WriteTimeout bounds one write to a client that does not read.
	WriteTimeout time.Duration
	// MinRate is how many bytes per second a client must take of a response, while there is
	// something to send. Optional: 0 means that WriteTimeout is the only bound.
	MinRate int64
	Log     *slog.Logger
	// Now is the clock for stamps. Optional: [clock.Wall].
	Now clock.Shared
}

// The defaults of Config.BodyTimeout, and of Config.MaxBodies as a multiple of MaxBody.
const (
	bodyTimeout = 30 * time.Second
	maxBodies   = 16
)

// New returns the handler of all routes.
func New(c Config) http.Handler { return newRouter(&c) }

// newRouter returns the router of all routes, which answers what has no route, too.
func newRouter(c *Config) *chi.Mux {
	c.setDefaults()
	monitor := &exchange.Monitor{
		Observer:  c.Observer,
		Log:       c.Log,
		Timeout:   c.WriteTimeout,
		Rate:      c.MinRate,
		Bodies:    newReceiver(c),
		RunRoutes: runRoutes,
	}
	self := &serverAPI{ready: c.Ready, metrics: c.Metrics, ui: c.UI}
	routes := slices.Concat(c.routes(monitor), self.routes())
	keys, version := !c.Door.LoopbackOnly && !c.Door.Anonymous, c.Version
	self.document = sync.OnceValue(func() []byte { return openAPI(routes, keys, version) })
	gate := &gate{
		door:         c.Door,
		bodies:       monitor.Bodies,
		authenticate: c.Authenticate,
		authorize:    c.Authorize,
		others:       c.Others,
		refusals:     refusals{waits: c.Refused, log: c.Log},
		log:          c.Log,
	}
	gate.door.Methods = methodsOf(routes)
	r := chi.NewRouter()
	r.Use(monitor.Observe, gate.admit)
	r.NotFound(gate.serve(&route{open: true, do: notFound}))
	r.MethodNotAllowed(gate.serve(&route{open: true, do: methodNotAllowed(r)}))
	for i := range routes {
		r.Method(routes[i].method, routes[i].path, gate.serve(&routes[i]))
	}
	return r
}

// setDefaults sets what is optional and must be there.
func (c *Config) setDefaults() {
	if c.Observer == nil {
		c.Observer = exchange.NoObserver{}
	}
	if c.Now == nil {
		c.Now = clock.Wall
	}
	if c.Streams == nil {
		c.Streams = unlimited{}
	}
	if c.Awaiting == nil {
		c.Awaiting = func(*http.Request, bool) {}
	}
	if c.Refused == nil {
		c.Refused = func(*http.Request) <-chan struct{} { return nil }
	}
	if c.Unread == nil {
		c.Unread = func(*http.Request) {}
	}
	if c.MaxBodies == 0 {
		c.MaxBodies = maxBodies * c.MaxBody
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = bodyTimeout
	}
}

func newReceiver(c *Config) *exchange.Receiver {
	return exchange.NewReceiver(exchange.Bodies{
		Most:      c.MaxBody,
		MostMedia: c.MaxMediaBody,
		All:       c.MaxBodies,
		Heavy:     cmp.Or(c.Heavy, turns.NewHeavy()),
		Timeout:   c.BodyTimeout,
		Deletes:   routeCopilotKit + "/", // CopilotKit sends the agent in it
		Awaiting:  c.Awaiting,
		Unread:    c.Unread,
	})
}

// routes returns all routes but those of the server itself.
func (c *Config) routes(m *exchange.Monitor) []route {
	out := &streamer{streams: c.Streams, detached: c.Detached, monitor: m}
	agents := &agentAPI{agents: c.Agents, authorize: c.Authorize, version: c.Version}
	runs := &runAPI{
		runs:    c.Runs,
		reloads: c.Reloads,
		cancel:  c.Cancel,
		results: results{threads: c.Threads, authorize: c.Authorize, log: c.Log},
		bodies:  m.Bodies,
		out:     out,
	}
	threads := &threadAPI{
		threads:   c.Threads,
		statuses:  c.Statuses,
		titles:    c.Titles,
		states:    c.States,
		others:    c.Others,
		authorize: c.Authorize,
		bodies:    m.Bodies,
		log:       c.Log,
	}
	history := &historyAPI{c.History, c.Upkeep, c.Authorize, m.Bodies}
	upkeep := &upkeepAPI{
		upkeep:   c.Upkeep,
		backup:   c.Backup,
		operator: c.Operator,
		audit:    c.Audit,
		bodies:   m.Bodies,
		now:      c.Now,
	}
	console := &consoleAPI{
		console:      c.Console,
		demo:         c.Demo,
		agents:       agents,
		authenticate: c.Authenticate,
		keyless:      c.Door.LoopbackOnly || c.Door.Anonymous,
		maxBody:      c.MaxBody,
		maxMediaBody: max(c.MaxBody, c.MaxMediaBody),
		bodies:       m.Bodies,
	}
	kit := &copilotKit{agents, runs, c.Threads, c.Authorize}
	return slices.Concat(runs.routes(), (&callAPI{c.Calls, m.Bodies}).routes(), threads.routes(),
		threads.stateRoutes(), history.routes(), upkeep.routes(), (&inspectAPI{c.Inspect, c.RunLog, c.Log}).routes(),
		(&transferAPI{c.Transfer, m.Bodies}).routes(), agents.routes(), console.routes(),
		(&appAPI{c.Apps, m.Bodies}).routes(), kit.routes(), (&copilotKitThreads{kit, threads, c.Upkeep}).routes(),
		(&aiSDK{kit, threads, c.Now}).routes(), (&tanStack{c.Joins, c.Reloads, out, c.Log}).routes())
}
