package server

// How store, engine, HTTP handler, metrics and middleware are wired together.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/connections"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/figures"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/http/door"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/metrics"
	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/pace"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/stores"
	"github.com/holdfast-agents/holdfast/internal/turns"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// New checks the configuration, opens the store and finds out how durable it is. It
// does not start anything.
func New(cfg Config) (*Server, error) {
	own := cfg.Now != nil
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Log = slog.New(redaction.NewLogHandler(cfg.Log.Handler(), redaction.Options{Patterns: cfg.RedactPatterns}))
	opened, err := openStore(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     cfg,
		store:   opened,
		now:     sharedClock(cfg.Now, own, opened),
		metrics: metrics.New(cfg.Agents),
		reached: cfg.Addr,
		opening: newOpening(),
	}
	s.cfg.Now = nil // s.now is what there is of it
	if err := s.wire(); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return s, nil
}

// wire makes the parts of the server that build on its store.
func (s *Server) wire() (err error) {
	if s.level, err = inspect(s.cfg, s.store); err != nil {
		return err
	}
	s.metrics.Durability(s.level)
	told := figures.New(s.now)
	s.observer = observe.Join(logObserver{s.cfg.Log, &tries{}}.observer(), s.metrics.Observer(), told.Observer(),
		s.cfg.Observer, observe.Observer{Committed: s.replayed})
	s.limits, s.circuits, s.heavy = s.limiter(), newCircuits(&s.cfg, s.store), turns.NewHeavy()
	s.metrics.CircuitsOpen(s.circuits.CountOpen)
	cfg := s.loopConfig()
	cfg.Pace = pace.New(cfg.Random)
	s.metrics.CallsWaiting(cfg.Pace.Waiting)
	if s.engine, err = owner.New(cfg); err != nil {
		return err
	}
	s.serveAgents(s.cfg, s.engine.Agents())
	// served has them, and nobody can use what is out of date
	s.cfg.Agents, s.cfg.Limits, s.cfg.Quotas = nil, nil, Quotas{}
	s.keeper = upkeep.New(s.keeperConfig())
	s.SetPrices(s.cfg.Prices)
	s.audited = &audited{
		engine:    s.engine,
		keeper:    s.keeper,
		store:     s.store,
		authorize: s.cfg.Authorize,
		audit:     auditLog{s.cfg.Log},
	}
	s.streams = &keyedStreams{s.engine, s.now}
	if err := s.open(&console{s: s, figures: told, started: s.now().UTC(), newID: clock.NewIDs(s.now)}); err != nil {
		return err
	}
	if s.cfg.Registerer == nil {
		return nil
	}
	if err := s.cfg.Registerer.Register(s.metrics.Collector()); err != nil {
		return fmt.Errorf("register the metrics in Config.Registerer: %w", err)
	}
	return nil
}

// open makes what stands between the network and the engine.
func (s *Server) open(self *console) error {
	cfg := s.cfg
	door, err := cfg.door()
	if err != nil {
		return err
	}
	dir := directoryOf(s.store)
	token := operator.Token(dir)
	if cfg.forOperatorHere() { // elsewhere only readers of the store's directory have one
		token = cmp.Or(cfg.OperatorToken, token)
	}
	s.operators = &operators{
		authenticate: cfg.Authenticate,
		authorize:    cfg.Authorize,
		dir:          dir,
		host:         door.Hosts.First(),
		token:        token,
		log:          cfg.Log,
	}
	s.front = newFront(cfg.MaxConnections, cfg.perAddress(), s.metrics, cfg.Log)
	s.handler = hfhttp.New(s.httpConfig(self, door))
	return nil
}

func (s *Server) httpConfig(self *console, door door.Door) hfhttp.Config {
	cfg := s.cfg
	return hfhttp.Config{
		Authorize: cfg.Authorize,
		Heavy:     s.heavy,
		Runs:      s.streams,
		Cancel:    s.engine.Cancel,
		Threads:   s.keeper,
		History:   s.keeper,
		Upkeep:    s.audited,
		Titles:    upkeep.Titles{Keeper: s.keeper},
		States:    s.audited,
		Statuses:  upkeep.Mine{Keeper: s.keeper},
		Reloads:   upkeep.Reloads{Keeper: s.keeper},
		Joins:     s.streams,
		Calls:     s.audited,
		Inspect:   newInspector(s),
		RunLog: func(
			ctx context.Context,
			who holdfast.Principal,
			thread, run string,
			after store.Cursor,
			limit int,
		) (*agui.Page, error) {
			return owner.Log(ctx, s.engine, who, thread, run, after, limit)
		},
		Transfer: newTransfer(s),
		Agents:   agentsNow{s},
		Console:  self,
		Apps:     apps{s, self.newID},
		Others:   self,
		Demo:     self,
		Streams:  s.limits,
		Detached: s.front.detached,
		Awaiting: connections.Awaiting,
		Refused:  connections.Refused,
		Unread:   connections.Unread,
		Ready:    s.opening.ready(s.engine.Ready),
		Backup:   backupOf(s.store),
		Operator: s.operators.of,
		Audit: func(ctx context.Context, who, action string, err error) {
			s.audited.audit.note(ctx, who, action, "", err)
		},
		Authenticate: s.authenticate(),
		Door:         door,
		UI:           cfg.UI,
		Metrics:      s.metricsHandler(),
		Observer:     s.metrics,
		Version:      cfg.Version,
		MaxBody:      cfg.MaxBody,
		MaxMediaBody: cfg.MaxMediaBody,
		MaxBodies:    cfg.MaxBodies,
		BodyTimeout:  cfg.BodyTimeout,
		WriteTimeout: 10 * time.Second,
		MinRate:      cfg.MinRate,
		Log:          cfg.Log,
		Now:          s.now,
	}
}

// metricsHandler is what GET /metrics serves on the server's own address; nil if the
// metrics have one of their own.
func (s *Server) metricsHandler() http.Handler {
	if s.cfg.MetricsAddr != "" {
		return nil
	}
	return s.metrics.Handler(s.cfg.Gatherer)
}

// authenticate returns the configured function or, without one, a function that takes
// every caller for the one local user.
func (s *Server) authenticate() func(*http.Request) (holdfast.Principal, error) {
	if s.cfg.Authenticate != nil {
		return s.cfg.Authenticate
	}
	return func(*http.Request) (holdfast.Principal, error) {
		return LocalPrincipal(), nil
	}
}

// sharedClock returns the clock for stamps: the program's own as it is, else that of the store
// or of this machine, which may be set while the server runs.
func sharedClock(now func() time.Time, own bool, s store.Store) clock.Shared {
	if own {
		return clock.Plain(now)
	}
	if c, shared := s.(store.Clock); shared {
		now = c.Now
	}
	return clock.Steady(now)
}

func openStore(cfg Config) (store.Store, error) {
	if cfg.OpenStore != nil {
		if cfg.Durability != "" && cfg.Durability != "store" {
			return nil, errors.New("Config.Durability is for a store that Config.Store names; the program's own " +
				"store decides itself what counts")
		}
		return cfg.OpenStore()
	}
	return stores.Open(cfg.Store, stores.Options{
		RedisPrefix:       cfg.RedisPrefix,
		RedisPasswordFile: cfg.RedisPasswordFile,
		Durability:        cfg.Durability,
		Now:               cfg.Now,
		Log:               cfg.Log,
	})
}

// finishURL returns the one-time URL with a token, for a call that is finished from outside.
func finishURL(s *Server, token string) string {
	base := s.cfg.PublicURL
	if base == "" {
		base = "http://" + s.reached
	}
	return strings.TrimSuffix(base, "/") + "/calls?token=" + url.QueryEscape(token)
}

// retentionEvery is how often retention looks at a page of threads.
const retentionEvery = 10 * time.Second

// dueEvery is how often a server that is alone looks for what is due at a time.
const dueEvery = 500 * time.Millisecond

func (s *Server) loopConfig() loop.Config {
	c := s.cfg
	agents, modelTries, maxMedia := c.engineAgents(&s.tools)
	format, _ := dataformat.Parse(c.DataFormat) // validate has found no mistake
	return loop.Config{
		Store:              s.store,
		Heavy:              s.heavy,
		Memory:             stores.Memory,
		Agents:             agents,
		Recover:            !c.NoRecovery,
		OnRevision:         c.OnRevision,
		PinTimeout:         c.PinTimeout,
		Alone:              c.OpenStore == nil && strings.HasPrefix(c.Store, "file:"),
		DataFormat:         format,
		FormatAgreed:       func(f dataformat.Status) { s.metrics.FormatAgreed(f.Write, f.Reads, len(f.Behind)) },
		Frequency:          loop.Frequency(c.CheckpointFrequency),
		KeepCheckpoints:    c.KeepCheckpoints,
		NoPendingWrites:    c.NoPendingWrites,
		Lease:              c.Lease,
		Circuit:            s.circuits,
		MaxRuns:            c.MaxRuns,
		Limits:             s.limits,
		MaxParallelTools:   maxParallelTools,
		ModelTries:         c.ModelTries,
		ModelTriesOf:       modelTries,
		MaxMedia:           c.MaxMedia,
		MaxMediaOf:         maxMedia,
		Authorize:          c.Authorize,
		SchemaMode:         loop.SchemaMode(c.SchemaChanges),
		ResetNewerStates:   c.ResetNewerStates,
		Durability:         s.level,
		StoreTimeout:       c.StoreTimeout,
		StopOnStoreFailure: c.StopOnStoreFailure,
		BufferBytes:        256 << 10,
		TailBytes:          128 << 10,
		DeltaWindow:        c.DeltaWindow,
		KeepAlive:          c.KeepAlive,
		WarnBytes:          c.ThreadWarnBytes,
		MaxBytes:           c.ThreadMaxBytes,
		FinishURL:          func(token string) string { return finishURL(s, token) },
		Ended:              func(key store.ThreadKey) { s.keeper.ArchiveSoon(key) },
		Log:                c.Log,
		Now:                s.now,
		NewID:              clock.NewIDs(s.now),
		Observer:           s.observer,
		Random:             rand.Float64,
	}
}

func (s *Server) keeperConfig() upkeep.Config {
	c := s.cfg
	return upkeep.Config{
		Store:           s.store,
		Engine:          s.engine,
		Limits:          s.limits,
		KeepCheckpoints: c.KeepCheckpoints,
		ArchiveAfter:    c.ArchiveAfter,
		Retention: upkeep.Retention{
			Every:       retentionEvery,
			Due:         dueEvery,
			Checkpoints: c.DeleteCheckpointsAfter,
			Threads:     c.DeleteThreadsAfter,
			PruneBytes:  c.ThreadPruneBytes,
		},
		Log:         c.Log,
		Now:         s.now,
		NewID:       clock.NewIDs(s.now),
		CheckState:  checkingStates(s.engine),
		Cleaned:     s.observer.Cleaned,
		Walked:      s.observer.Walked,
		IndexLooked: func(l upkeep.IndexLook) { s.observer.IndexLooked(observe.IndexLook(l)) },
		Price:       s.prices.priced,
	}
}

// checkingStates returns what checks shared states against the schemas that the agents have at the time.
func checkingStates(e *owner.Engine) func(ctx context.Context, agent string, state json.RawMessage) error {
	return func(ctx context.Context, agent string, state json.RawMessage) error {
		return e.Agents().CheckState(ctx, agent, state)
	}
}

// limiter returns what holds tenants and users to the quotas.
func (s *Server) limiter() *quota.Limiter {
	c := s.cfg
	users := c.MultiUser
	if users == nil && c.Authenticate != nil {
		users = func(string) bool { return true }
	}
	return quota.New(quota.Config{
		Limits:         c.Quotas.limits(),
		Share:          max(1, c.MaxRuns/4),
		Several:        c.MultiTenant,
		SeveralUsers:   users,
		AllRuns:        int64(c.MaxRuns),
		AllStreams:     int64(c.MaxConnections),
		AllStreamBytes: max(0, c.MaxStreamBytes),
		Ledger:         s.store,
		Now:            s.now,
		Log:            c.Log,
		NewID:          clock.NewIDs(s.now),
		Rejected:       s.metrics.LimitRejected,
	})
}
