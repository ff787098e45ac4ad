// Package quota bounds what one tenant and one user may use of a server: runs, streams and
// what these hold in memory, which each process counts for itself, and threads and stored
// bytes, which all processes that share a store count together, in its ledger.
//
// Nothing that runs is ever ended by a limit: a limit refuses what is new.
package quota

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// The limits. The counts of this process are in gate.go, what is counted in the store in
// usage.go, and how that is put right in count.go.

// Bounds are the limits of one tenant, or of one user. 0 means no limit.
type Bounds struct {
	Runs    int   // that run at a time in this process
	Streams int   // that are open at a time in this process
	Threads int   // that are stored
	Bytes   int64 // that the stored threads take
}

// Or returns the bounds with those of others where they have none.
func (b Bounds) Or(others Bounds) Bounds {
	return Bounds{
		Runs: cmp.Or(b.Runs, others.Runs), Streams: cmp.Or(b.Streams, others.Streams),
		Threads: cmp.Or(b.Threads, others.Threads), Bytes: cmp.Or(b.Bytes, others.Bytes),
	}
}

// Pair are the bounds of a tenant and of each of its users.
type Pair struct {
	PerTenant, PerUser Bounds
}

// Limits are the limits of all tenants and users. They do not change.
type Limits struct {
	// Pair holds for all tenants.
	Pair
	// Tenants holds for single tenants, by name, where their bounds are not 0.
	Tenants map[string]Pair
}

// Config is what a Limiter needs. Only the zero limits and Lag may be left out.
type Config struct {
	// Limits are those of the beginning.
	Limits
	// Share is how many runs a tenant without a limit of its own may have if there are
	// several tenants, which Several reports; nil means that there is one.
	Share   int
	Several func() bool
	// SeveralUsers reports whether a tenant may have several users; nil means that it has one.
	// Then a user without a limit of their own leaves some of what there is to others.
	SeveralUsers func(tenant string) bool
	// AllRuns, AllStreams and AllStreamBytes are how many this process may have in all; 0 means
	// any number, of which nothing needs to be left to anybody. Exports may hold as many bytes
	// as streams.
	AllRuns, AllStreams, AllStreamBytes int64
	Ledger                              store.Ledger // counts for all processes
	Now                                 clock.Shared // the clock for stamps
	Log                                 *slog.Logger // says who reaches limits, and what the store does not count
	// NewID returns a random id, unique and unguessable; prefix says what it is for.
	NewID func(prefix string) string
	// Lag is how long it may take until the ledger has what a thread has; 0 means as long as
	// it takes while every process runs Run.
	Lag time.Duration
	// Rejected is called when a limit has refused something. It must not block.
	Rejected func(resource, scope string)
}

// The things that a limit can be about, and the holders of limits. Metrics and errors name
// them.
const (
	ResourceRuns    = "runs"
	ResourceStreams = "streams"
	ResourceThreads = "threads"
	ResourceBytes   = "bytes"
	// ResourceStreamBytes is what streams hold in memory.
	ResourceStreamBytes = "streamBytes"
	// ResourceExportBytes is what exports do.
	ResourceExportBytes = "exportBytes"

	ScopeTenant = "tenant"
	ScopeUser   = "user"
	// ScopeServer is all of them together.
	ScopeServer = "server"
)

// Limiter holds the limits and what is used of them. A process has one. A nil Limiter has
// no limits and counts nothing.
type Limiter struct {
	cfg    Config // what is not about limits
	limits atomic.Pointer[Limits]

	runs, streams, streamBytes, exportBytes *gate

	usage *usage
	// counting is closed once something is counted in the store.
	counting chan struct{}

	mu     sync.Mutex
	logged clock.Moment // when somebody last reached a limit
}

// New returns a Limiter. Run counts in the store.
func New(cfg Config) *Limiter {
	l := &Limiter{
		cfg:         cfg,
		runs:        newGate(ResourceRuns, cfg.AllRuns),
		streams:     newGate(ResourceStreams, cfg.AllStreams),
		streamBytes: newGate(ResourceStreamBytes, cfg.AllStreamBytes),
		exportBytes: newGate(ResourceExportBytes, cfg.AllStreamBytes),
		usage:       newUsage(cfg),
		counting:    make(chan struct{}),
	}
	l.Set(cfg.Limits)
	return l
}

// Set replaces the limits, for what comes from now on. Accounts in the store are kept from the
// first limit for them on, even if there is none any more.
func (l *Limiter) Set(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits.Store(&limits)
	if limits.counts() && !l.Counts() {
		close(l.counting)
	}
}

// counts reports whether there is a limit for something that is counted in the store.
func (l *Limits) counts() bool {
	stored := func(p Pair) bool {
		return p.PerTenant.Threads > 0 || p.PerTenant.Bytes > 0 || p.PerUser.Threads > 0 || p.PerUser.Bytes > 0
	}
	if stored(l.Pair) {
		return true
	}
	for _, p := range l.Tenants {
		if stored(p) {
			return true
		}
	}
	return false
}

// of returns the bounds that hold for a tenant.
func (l *Limiter) of(tenant string) Pair {
	limits := l.limits.Load()
	own := limits.Tenants[tenant]
	p := Pair{PerTenant: own.PerTenant.Or(limits.PerTenant), PerUser: own.PerUser.Or(limits.PerUser)}
	if p.PerTenant.Runs == 0 && l.cfg.Several != nil && l.cfg.Several() {
		p.PerTenant.Runs = l.cfg.Share
	}
	return p
}

// TakeRun counts a run that begins. The error says that the tenant or the user has too
// many; otherwise the caller calls FreeRun when the run has ended here.
func (l *Limiter) TakeRun(who holdfast.Principal) error {
	if l == nil {
		return nil
	}
	p := l.of(who.Tenant)
	b := l.bounds(who, p.PerTenant.Runs, p.PerUser.Runs)
	reached := l.runs.take(who, 1, b)
	if reached != nil && reached.scope == ScopeServer {
		reached = nil // the engine refuses it
		l.runs.hold(who, 1)
	}
	return l.rejected(who, reached)
}

// bounds returns what is allowed to somebody.
func (l *Limiter) bounds(who holdfast.Principal, perTenant, perUser int) bounds {
	return bounds{
		perTenant: int64(perTenant),
		perUser:   int64(perUser),
		tenants:   l.cfg.Several != nil && l.cfg.Several(),
		users:     l.cfg.SeveralUsers != nil && l.cfg.SeveralUsers(who.Tenant),
	}
}

// HoldRun is TakeRun for a run that began elsewhere and continues here, whatever the
// limits are.
func (l *Limiter) HoldRun(who holdfast.Principal) {
	if l != nil {
		l.runs.hold(who, 1)
	}
}

// FreeRun ends what TakeRun or HoldRun began.
func (l *Limiter) FreeRun(who holdfast.Principal) {
	if l != nil {
		l.runs.free(who, 1)
	}
}

// OpenStream counts a stream that is opened. The error says that the tenant or the user
// has too many; otherwise the caller calls closed when the stream ends. Calling it again
// changes nothing.
func (l *Limiter) OpenStream(who holdfast.Principal) (closed func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	p := l.of(who.Tenant)
	if err := l.streams.take(who, 1, l.bounds(who, p.PerTenant.Streams, p.PerUser.Streams)); err != nil {
		return nil, l.rejected(who, err)
	}
	return sync.OnceFunc(func() { l.streams.free(who, 1) }), nil
}

// HoldBytes counts what a stream holds in memory until its client has taken it. The error says
// that there is no room for it; otherwise the caller calls taken when it is gone. Calling it
// again changes nothing.
func (l *Limiter) HoldBytes(who holdfast.Principal, bytes int64) (taken func(), err error) {
	if l == nil || bytes == 0 {
		return func() {}, nil
	}
	return l.holdBytes(l.streamBytes, who, bytes)
}

// HoldExport is HoldBytes for a thread that is exported.
func (l *Limiter) HoldExport(who holdfast.Principal, bytes int64) (taken func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	return l.holdBytes(l.exportBytes, who, bytes)
}

func (l *Limiter) holdBytes(g *gate, who holdfast.Principal, bytes int64) (taken func(), err error) {
	bytes = g.fitting(bytes)
	if err := g.take(who, bytes, l.bounds(who, 0, 0)); err != nil {
		return nil, l.rejected(who, err)
	}
	return sync.OnceFunc(func() { g.free(who, bytes) }), nil
}

// reached is a limit that is in the way.
type reached struct {
	resource, scope string
	used, limit     int64
	shared          bool // no limit is configured: the rest is kept for others
}

// rejected reports that a limit is in the way and returns the error for the caller; nil if
// none is.
func (l *Limiter) rejected(who holdfast.Principal, r *reached) error {
	if r == nil {
		return nil
	}
	l.cfg.Rejected(r.resource, r.scope)
	l.mu.Lock()
	say := l.logged.Ran() >= time.Second // those who are refused may come back at once
	if say {
		l.logged = clock.Now()
	}
	l.mu.Unlock()
	if say {
		l.cfg.Log.Warn("limit reached",
			"resource", r.resource, "scope", r.scope, "tenant", who.Tenant, "user", who.User, "used", r.used,
			"limit", r.limit)
	}
	return r.err()
}

// err is what the caller is told.
func (r *reached) err() *holdfast.Error {
	who := map[string]string{ScopeTenant: "Your organization has", ScopeUser: "You have",
		ScopeServer: "All callers together have"}[r.scope]
	what, hint := r.words()
	more := "Operators raise the limit under limits in the configuration file."
	switch {
	case r.resource == ResourceStreamBytes, r.resource == ResourceExportBytes:
		more = "Operators raise the limit with settings.maxStreamBytes."
	case r.shared && r.scope == ScopeUser:
		more = "The rest is kept for other users. Operators set another limit with limits.perUser." + r.resource +
			" in the configuration file."
	case r.shared:
		more = "The rest is kept for others. Operators set another limit with limits.perTenant." + r.resource +
			" in the configuration file."
	}
	return holdfast.Errorf(codes.LimitExceeded, "%s %d %s; %d are allowed.", who, r.used, what, r.limit).
		WithHint("%s %s", hint, more).
		With("resource", r.resource).With("scope", r.scope).With("used", r.used).With("limit", r.limit)
}

// words returns what there is too much of, and what the caller can do.
func (r *reached) words() (what, hint string) {
	switch r.resource {
	case ResourceRuns:
		return "runs in progress", "Wait until one of the runs has ended, or cancel one: POST " +
			"/threads/{thread}/runs/{run}/cancel."
	case ResourceStreams:
		return "streams open", "Close a stream that nobody reads; the runs go on without it."
	case ResourceStreamBytes:
		return "bytes of history on the way to clients",
			"Read the streams that are open, or close them; the runs go on without them."
	case ResourceExportBytes:
		return "bytes of exports on the way to clients", "Read the exports that have begun to their end, or leave them."
	case ResourceThreads:
		return "threads", "Delete threads that are not needed any more: DELETE /threads/{thread}, or POST " +
			"/maintenance/delete-inactive."
	}
	return "bytes stored", "Delete or prune threads that are not needed any more: DELETE /threads/{thread}, POST " +
		"/threads/{thread}/prune."
}

// owner returns who somebody is, without the rights with which a request came: all
// requests of a user count together.
func owner(who holdfast.Principal) holdfast.Principal {
	return holdfast.Principal{Tenant: who.Tenant, User: who.User}
}
