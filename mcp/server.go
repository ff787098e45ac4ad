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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/mcp/internal/stdio"
	"github.com/holdfast-agents/holdfast/mcp/internal/streamhttp"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// The keeper of a connection: a single goroutine makes it, makes it again when it is lost, and
// reads the list of tools.

// Server is an MCP server whose tools are used here. One goroutine keeps a connection to it
// for everybody, and the list of its tools up to date; a call takes whichever connection
// there is. The methods may be called concurrently.
type Server struct {
	peer
	http   *http.Client
	tools  atomic.Pointer[listing]
	first  chan struct{} // closed after the first attempt to connect
	once   sync.Once
	random func() float64
}

var _ holdfast.Toolset = (*Server)(nil)

// Open starts to use a server. It does not wait for it: until the server can be reached it
// has no tools. The error lists the mistakes in the options.
func Open(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("the MCP server %q: %w", o.Name, err)
	}
	s := &Server{
		peer:   peer{o: o.withDefaults(), secrets: o.secrets()},
		first:  make(chan struct{}),
		random: rand.Float64,
	}
	s.o.Log = slog.New(discreet{s.o.Log.Handler(), s.secrets}).With("mcp", o.Name)
	s.conn = newConnection(time.Now().Add(s.o.ConnectTimeout))
	s.held = newHolding(s.conn.ctx, s.o.ElicitationWait)
	s.tools.Store(&listing{})
	if o.URL != "" {
		guard, err := o.guard()
		if err != nil {
			return nil, err
		}
		s.http = client(guard, s.secrets, o.RoundTripper)
	}
	s.conn.wg.Go(s.run)
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

// Refused returns what the server offers and is not used, with the reasons. Tools that the
// options leave out are not among them.
func (s *Server) Refused() []Refused { return s.tools.Load().refused }

// LeftOut returns the server's names of the tools that the options leave out, as it lists
// them.
func (s *Server) LeftOut() []string { return s.tools.Load().leftOut }

// Revision returns the revision of the protocol that is spoken with the server; empty while it
// is not connected to.
func (s *Server) Revision() string {
	if x := s.conn.now().current; x != nil {
		return x.version
	}
	return ""
}

// Ready waits until the server was connected to or the first attempt has failed, and returns
// why there is no connection.
func (s *Server) Ready(ctx context.Context) error {
	select {
	case <-s.first:
	case <-ctx.Done():
		select {
		case <-s.first: // a late request is told, too
		default:
			return context.Cause(ctx)
		}
	}
	if m := s.conn.now(); m.current == nil {
		return m.problem
	}
	return nil
}

// AwaitTool waits until the server's tools were listed for the first time, if a tool of this
// name can be one of them, but no longer than ConnectTimeout after [Open]. A call that
// continues in another process waits like that for its tool.
func (s *Server) AwaitTool(ctx context.Context, name string) error {
	for strings.HasPrefix(name, s.o.Name+"_") {
		m := s.conn.now()
		if s.tools.Load().read {
			break
		}
		if err := s.conn.outlast(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the connection and waits for its process, if it is one. Calls in progress fail.
func (s *Server) Close() {
	s.conn.close()
	s.held.stop()
	s.conn.wg.Wait()
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// The pauses between attempts to connect double from the first to the longest.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	maxAsked     = 2 * time.Minute // that a server can ask for
)

// run keeps a connection until the server is closed.
func (s *Server) run() {
	defer s.conn.leave()
	var e era
	pause := firstPause
	for s.conn.ctx.Err() == nil {
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
	case <-s.conn.ctx.Done():
		return false
	}
}

// finish notes how the attempt to connect ended. The new connection takes the old one's
// place, which ends when its calls have.
func (s *Server) finish(x *session, list *listing, err error) {
	differs := x != nil && s.replace(list)
	old, said := s.conn.attempted(x, err)
	defer s.once.Do(func() { close(s.first) })
	if old != nil {
		s.conn.retire(old)
	}
	switch {
	case s.conn.ctx.Err() != nil:
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

// followTimeout is how long the list of tools waits until changes of it are told.
const followTimeout = time.Second

// connect connects to the server and lists its tools.
func (s *Server) connect(e *era) (*session, *listing, error) {
	ctx, cancel := context.WithTimeout(s.conn.ctx, s.o.ConnectTimeout)
	defer cancel()
	h := &hello{
		era:     *e,
		elicits: s.o.Elicitation,
		apps:    s.o.Apps != nil,
		events:  newEvents(),
		log:     s.o.Log,
	}
	c, err := s.open(h)
	if err != nil {
		return nil, nil, err
	}
	x, err := connect(ctx, c, h)
	if err != nil {
		h.learn(e, "", err)
		return nil, nil, err
	}
	h.learn(e, x.version, nil)
	s.conn.add(x)
	// A change between the list and the moment from which changes are told would be missed.
	t := time.NewTimer(followTimeout)
	defer t.Stop()
	select {
	case <-h.events.following:
		x.followed = true
	case <-t.C:
	case <-ctx.Done():
	}
	list, err := s.list(ctx, x)
	if err != nil || s.conn.ctx.Err() != nil {
		_ = x.Close()
		s.conn.retire(x)
		return nil, nil, cmp.Or(err, errClosed)
	}
	return x, list, nil
}

// open starts the process, or makes ready for requests.
func (s *Server) open(h *hello) (transport, error) {
	if s.o.URL == "" {
		if !h.era.patient && !h.era.modern {
			h.probe = min(probeTimeout, s.o.ConnectTimeout/2)
		}
		c, err := stdio.Start(s.o.spec(s.secrets.redact), s.o.MaxMessageBytes)
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
		Listening: h.events.follow,
		Stale:     h.events.replace,
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
		case <-s.conn.ctx.Done():
			s.loses(x, errClosed)
			return errClosed
		case <-x.ended:
			err := fmt.Errorf("the connection has ended: %w", cmp.Or(x.err, errors.New("the server has closed it")))
			s.loses(x, err)
			return err
		case err := <-x.events.gone:
			if errors.Is(err, errSlow) {
				*e = era{modern: true, patient: true}
			}
			s.loses(x, err)
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

// loses takes note of a connection that cannot be used any more.
func (s *Server) loses(x *session, err error) {
	err = s.secrets.clean(err)
	s.conn.lost(x, err)
	if s.conn.ctx.Err() == nil {
		s.o.Log.Warn("the connection to an MCP server is lost", "error", err)
	}
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
	ctx, cancel := context.WithTimeout(s.conn.ctx, s.o.ConnectTimeout)
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
