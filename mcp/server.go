package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/mcp/internal/stdio"
	"github.com/holdfast-agents/holdfast/mcp/internal/streamhttp"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// The connection to a server, seen from its tools: there is one or there is none. A single
// goroutine makes it, makes it again when it is lost, and reads the list of tools.

// Server is an MCP server whose tools are used here. One goroutine keeps a connection to it
// for everybody, and the list of its tools up to date; a call takes whichever connection
// there is. The methods may be called concurrently.
type Server struct {
	o       Options
	secrets *secrets
	http    *http.Client
	tools   atomic.Pointer[listing]
	ctx     context.Context
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup
	first   chan struct{} // closed after the first attempt to connect
	once    sync.Once
	random  func() float64

	mu      sync.Mutex
	current *session
	alive   map[*session]bool
	changed chan struct{} // closed when current or problem has changed
	hope    time.Time     // until when it is waited for a connection if there is none
	held    map[string]*held
	problem error // why there is no connection
}

var _ holdfast.Toolset = (*Server)(nil)

// Open starts to use a server. It does not wait for it: until the server can be reached it
// has no tools. The error lists the mistakes in the options.
func Open(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("the MCP server %q: %w", o.Name, err)
	}
	s := &Server{
		o:       o.withDefaults(),
		secrets: o.secrets(),
		first:   make(chan struct{}),
		alive:   map[*session]bool{},
		held:    map[string]*held{},
		changed: make(chan struct{}),
		random:  rand.Float64,
	}
	s.o.Log = slog.New(discreet{s.o.Log.Handler(), s.secrets}).With("mcp", o.Name)
	s.hope = time.Now().Add(s.o.ConnectTimeout)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.tools.Store(&listing{})
	if o.URL != "" {
		guard, err := o.guard()
		if err != nil {
			return nil, err
		}
		s.http = client(guard, s.secrets, o.RoundTripper)
	}
	s.wg.Go(s.run)
	return s, nil
}

// client returns a client whose requests go where the guard allows it, and not where an
// answer says.
func client(guard *netguard.Guard, known *secrets, wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	var t http.RoundTripper = watcher{guard.Transport(&http.Transport{
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}), known}
	if wrap != nil {
		t = wrap(t)
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Name returns the server's name.
func (s *Server) Name() string { return s.o.Name }

// Tools returns the server's tools as they are now, sorted by name: those of the last list,
// also while the server is down. The caller must not change the slice.
func (s *Server) Tools() []holdfast.Tool { return s.tools.Load().tools }

// Refused returns what the server offers and is not used, with the reasons. What the options
// leave out is not among it.
func (s *Server) Refused() []Refused { return s.tools.Load().refused }

// LeftOut returns the server's names of the tools that the options leave out, as it lists
// them.
func (s *Server) LeftOut() []string { return s.tools.Load().leftOut }

// Revision returns the revision of the protocol that is spoken with the server; empty while it
// is not connected to.
func (s *Server) Revision() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return ""
	}
	return s.current.version
}

// Ready waits until the server was connected to or the first attempt has failed, and returns
// why there is no connection.
func (s *Server) Ready(ctx context.Context) error {
	select {
	case <-s.first:
	case <-ctx.Done():
		select {
		case <-s.first: // who asks too late is told all the same
		default:
			return context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return s.problem
	}
	return nil
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("the server is not used any more")

// Close ends the connection and waits for its process, if it is one. Calls in progress fail.
func (s *Server) Close() {
	s.mu.Lock()
	s.cancel(errClosed)
	for _, h := range s.held {
		h.timer.Stop()
	}
	for x := range s.alive {
		_ = x.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// The pauses between attempts to connect double from the first to the longest.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	maxAsked     = 2 * time.Minute // that a server can ask for
	// settled is how long a connection has to last for the next attempt to be made at once,
	// and how long after its loss calls wait for another.
	settled = 10 * time.Second
)

// run keeps a connection until the server is closed.
func (s *Server) run() {
	defer s.leave()
	var e era
	pause := firstPause
	for s.ctx.Err() == nil {
		x, list, err := s.connect(&e)
		err = s.secrets.clean(err)
		s.finish(x, list, err)
		if err == nil {
			err = s.watch(x, &e)
			if time.Since(x.born) >= settled {
				pause = firstPause
				continue
			}
		}
		if !s.rest(max(time.Duration(float64(pause)*(0.8+0.4*s.random())), retryAfter(err))) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// leave ends the connection that there is.
func (s *Server) leave() {
	s.mu.Lock()
	x := s.current
	s.current = nil
	s.mu.Unlock()
	if x != nil {
		_ = x.Close()
		s.retire(x)
	}
}

// retryAfter returns how long the server wants to be left alone.
func retryAfter(err error) time.Duration {
	var status *wire.StatusError
	if errors.As(err, &status) {
		return min(status.RetryAfter, maxAsked)
	}
	return 0
}

// rest waits; false if the server was closed meanwhile.
func (s *Server) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// finish notes how the attempt to connect ended. The new connection takes the old one's
// place, which ends when its calls have.
func (s *Server) finish(x *session, list *listing, err error) {
	s.mu.Lock()
	old := s.current
	differs := false
	said := err != nil && s.problem != nil && err.Error() == s.problem.Error()
	switch {
	case x != nil:
		s.current, s.problem = x, nil
		differs = s.replace(list)
	case old == nil || old.dead():
		s.current, s.problem = nil, err
	default:
		old = nil // it goes on
	}
	s.change()
	s.mu.Unlock()
	defer s.once.Do(func() { close(s.first) })
	if old != nil {
		s.retire(old)
	}
	switch {
	case s.ctx.Err() != nil:
	case err == nil:
		s.o.Log.Info("connected to an MCP server", "revision", x.version, "tools", len(list.tools))
		if differs {
			list.log(s.o.Log)
		}
	case !said:
		log := s.o.Log
		if hint := hintOf(err); hint != "" {
			log = log.With("hint", hint)
		}
		log.Warn("an MCP server cannot be used; it is tried again", "error", err)
	}
}

// change tells those who wait that something has changed. The caller holds mu.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// start runs f in a goroutine that Close waits for; false if the server is closed.
func (s *Server) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// retire lets a session end when its calls have.
func (s *Server) retire(x *session) {
	s.wg.Go(func() {
		x.retire()
		s.mu.Lock()
		delete(s.alive, x)
		s.mu.Unlock()
	})
}

// followTimeout is how long the list of tools waits until changes of it are told.
const followTimeout = time.Second

// connect connects to the server and lists its tools.
func (s *Server) connect(e *era) (*session, *listing, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.ConnectTimeout)
	defer cancel()
	ev, h := newEvents(), &hello{era: *e, elicits: s.o.Elicitation}
	c, err := s.open(ev, h)
	if err != nil {
		return nil, nil, err
	}
	x, err := connect(ctx, c, ev, h, s)
	if err != nil {
		h.learn(e, "", err)
		return nil, nil, err
	}
	h.learn(e, x.version, nil)
	s.mu.Lock()
	s.alive[x] = true
	s.mu.Unlock()
	// A change between the list and the moment from which changes are told would be missed.
	t := time.NewTimer(followTimeout)
	defer t.Stop()
	select {
	case <-ev.following:
		x.followed = true
	case <-t.C:
	case <-ctx.Done():
	}
	list, err := s.list(ctx, x)
	if err != nil || s.ctx.Err() != nil {
		_ = x.Close()
		s.retire(x)
		return nil, nil, cmp.Or(err, errClosed)
	}
	return x, list, nil
}

// open starts the process, or makes ready for requests.
func (s *Server) open(ev *events, h *hello) (transport, error) {
	if s.o.URL == "" {
		if !h.era.patient && !h.era.modern {
			h.probe = min(probeTimeout, s.o.ConnectTimeout/2)
		}
		c, err := stdio.Start(s.o.spec(s.secrets), s.o.MaxMessageBytes)
		if err != nil {
			return nil, fmt.Errorf("it cannot be started: %w", err)
		}
		return c, nil
	}
	header := http.Header{}
	for name, value := range s.o.Headers {
		header.Set(name, value)
	}
	return streamhttp.New(streamhttp.Options{
		URL:       s.o.URL,
		Client:    s.http,
		Header:    header,
		Redact:    s.secrets.redact,
		Limit:     s.o.MaxMessageBytes,
		Listening: ev.follow,
		Stale:     ev.replace,
	}), nil
}

// listPause is the least time between two readings of the list of tools.
const listPause = 500 * time.Millisecond

// watch follows changes of the list of tools until the connection is to be replaced, and
// returns why.
func (s *Server) watch(x *session, e *era) error {
	late := x.events.following
	if x.followed {
		late = nil
	}
	// However often a server says that its list has changed or cannot give it, it is asked
	// for it only so often.
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	relist, wait := x.events.relist, listPause
	for {
		select {
		case <-late:
			late = nil
			signal(x.events.relist, struct{}{})
		case <-s.ctx.Done():
			s.lost(x, errClosed)
			return errClosed
		case <-x.ended:
			err := fmt.Errorf("the connection has ended: %w", cmp.Or(x.err, errors.New("the server has closed it")))
			s.lost(x, err)
			return err
		case err := <-x.events.gone:
			if errors.Is(err, errSlow) {
				*e = era{modern: true, patient: true}
			}
			s.lost(x, err)
			return err
		case err := <-x.events.stale:
			s.o.Log.Info("an MCP server is connected to again", "reason", err)
			return err // and x serves calls until there is another
		case <-relist:
			if err := s.relist(x); err != nil {
				signal(x.events.relist, struct{}{})
				wait = min(2*wait, longestPause)
			} else {
				wait = listPause
			}
			relist = nil
			pause.Reset(wait)
		case <-pause.C:
			relist = x.events.relist
		}
	}
}

// lost notes that a connection cannot be used any more. Calls wait for the next one.
func (s *Server) lost(x *session, err error) {
	err = s.secrets.clean(err)
	s.mu.Lock()
	s.current, s.problem, s.hope = nil, err, time.Now().Add(settled)
	s.change()
	s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.o.Log.Warn("the connection to an MCP server is lost", "error", err)
	}
	s.retire(x)
}

// replace puts a list in the place of the last one; false if it says the same.
func (s *Server) replace(list *listing) bool {
	if old := s.tools.Load(); old.read && reflect.DeepEqual(old, list) {
		return false
	}
	s.tools.Store(list)
	return true
}

// relist takes over a changed list of tools.
func (s *Server) relist(x *session) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.ConnectTimeout)
	defer cancel()
	list, err := s.list(ctx, x)
	if err != nil {
		s.o.Log.Warn("the changed list of an MCP server's tools cannot be read", "error", err)
		return err
	}
	if !s.replace(list) {
		s.o.Log.Debug("the list of an MCP server's tools was read again", "tools", len(list.tools))
		return nil
	}
	s.o.Log.Info("the list of an MCP server's tools has changed", "tools", len(list.tools))
	list.log(s.o.Log)
	return nil
}
