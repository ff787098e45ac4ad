// Package redisstore keeps threads in Redis, or in anything that speaks its protocol,
// so that several servers share them and each can take over what another left behind.
//
// A commit is one Lua script, and all keys of a thread are in one hash slot, so that a cluster
// can run it. Anything that must be found across threads is found by hints, which the heads
// correct. It needs Redis 6.2 or newer, and no modules.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

var (
	_ store.Store = (*Store)(nil)
	_ store.Clock = (*Store)(nil)
)

// Options are the choices of [New]; the zero value is right for a server.
type Options struct {
	// Prefix begins every key and channel, so that several installations can share
	// one Redis; the default is "hf:". It contains no braces.
	Prefix string
	// Now is this process's clock, which may be wrong: only the time between two readings of
	// Redis's counts. The default is time.Now.
	Now func() time.Time
	// Patience is how long New waits for a Redis that does not answer yet, or that still
	// loads its data; 0 means not at all.
	Patience time.Duration
	// Log receives that New waits, that another process is gone, and, at debug level, what
	// go-redis reports about connections, which is global to the process; by default it is
	// dropped. Errors are returned anyway.
	Log *slog.Logger
	// PasswordFile is a file with the password, which Open uses instead of the URL's. It is
	// read for each new connection, so that the password can change.
	PasswordFile string
	// Replicas is how many replicas must have a write before it counts, and before anything
	// of it is shown: the level failover. New refuses a Redis that has fewer. 0 means that
	// Redis's own answer is enough.
	Replicas int
	// Waited is called before the store looks which threads are watched: those who watch one, or
	// leave it, at the same moment may still be about to. It is nil in a server.
	Waited func(ctx context.Context)
}

// Store is a store in Redis. All its methods may be called concurrently.
type Store struct {
	*formats
	*roster
	directory *directory
	owners    *owners
	client    redis.UniversalClient
	keys      keys
	values    *values
	scripts   *scripts
	clock     *clock.Remote
	hints     *hints
	calls     *calls
	announcer *announcer
	watchers  *watchers
	peers     *peers
	handed    atomic.Int64 // how many threads were handed over
	sender    *sender
	replicas  *replicas
	closeOnce sync.Once
	closeErr  error
}

// Handles reports whether the URL is one that Open accepts.
func Handles(rawURL string) bool { return connection.Handles(rawURL) }

// Open connects to the Redis that the URL names:
//
//	redis://user:password@host:6379/0
//	rediss://…                              with TLS
//	redis+sentinel://host:26379/0?master_name=mymaster&addr=host2:26379
//	redis+cluster://host:6379?addr=host2:6379
//
// Further parameters are go-redis's own: pool_size, read_timeout and so on. No error
// contains the password. The caller must call Close.
func Open(ctx context.Context, rawURL string, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	redis.SetLogger(connection.Log{Log: opts.Log})
	client, err := connection.To(rawURL, opts.PasswordFile)
	if err != nil {
		return nil, err
	}
	connection.WatchPassword(client, opts.PasswordFile, opts.Log)
	s, err := New(ctx, client, opts)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return s, nil
}

// New returns a store that uses the client; Close closes it. It waits for Redis if
// Options.Patience says so. The client should have ContextTimeoutEnabled, so that deadlines
// hold.
func New(ctx context.Context, client redis.UniversalClient, opts Options) (*Store, error) {
	codec, err := frame.New()
	if err != nil {
		return nil, err
	}
	if opts.Prefix == "" {
		opts.Prefix = "hf:"
	}
	if strings.ContainsAny(opts.Prefix, "{}") {
		return nil, fmt.Errorf("the prefix %q contains a brace, which has a meaning in keys; leave it out", opts.Prefix)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	k := keysOf(client, opts.Prefix)
	ping := func(ctx context.Context) error { return client.Ping(ctx).Err() }
	if isCluster(client) { // whose nodes answer before the cluster takes commands
		ping = func(ctx context.Context) error { return client.Exists(ctx, k.leases()).Err() }
	}
	acks := &replicas{
		need:     opts.Replicas,
		within:   ackTimeout,
		client:   client,
		keys:     k,
		commitOf: commitOf,
	}
	answers := func(ctx context.Context) error {
		if err := ping(ctx); err != nil || opts.Replicas == 0 {
			return err
		}
		return acks.try(ctx)
	}
	if err := connection.Reach(ctx, answers, opts.Patience, opts.Log); err != nil {
		return nil, err
	}
	if err := refuseEarly(ctx, client, k); err != nil {
		return nil, err
	}
	s := newStore(client, codec, acks, opts)
	asked := opts.Now()
	if t, err := client.Time(ctx).Result(); err == nil { // else the local clock goes on until the lease is renewed
		s.clock.Read(int(t.UnixMicro()), asked)
	}
	s.watchers.start(shardsOf(ctx, client, k, opts.Log))
	s.sender.start(client, acks)
	return s, nil
}

// newStore puts the parts of a store together. Nothing runs yet.
func newStore(client redis.UniversalClient, codec *frame.Codec, acks *replicas, opts Options) *Store {
	k, cluster := keysOf(client, opts.Prefix), isCluster(client)
	formats := newFormats(client, k)
	s := &Store{
		formats:  formats,
		roster:   newRoster(client, k),
		client:   client,
		keys:     k,
		values:   &values{codec, codec.Earlier(), &formats.written},
		scripts:  newScripts(client, k),
		clock:    &clock.Remote{Local: opts.Now},
		hints:    &hints{},
		sender:   &sender{},
		replicas: acks,
	}
	s.watchers = &watchers{
		client:  client,
		keys:    k,
		scripts: s.scripts,
		clock:   s.clock,
		elders:  newElders(client, k),
		waited:  opts.Waited,
	}
	s.peers = newPeers(client, k, s.watchers, s.roster, s.clock, opts.Log)
	s.watchers.news, s.watchers.joined = s.peers.heard, s.peers.joined
	s.roster.missing = s.peers.missing
	s.calls = &calls{
		keys:    k,
		values:  s.values,
		scripts: s.scripts,
		clock:   s.clock,
		cluster: cluster,
	}
	s.directory = &directory{
		client:   client,
		keys:     k,
		values:   s.values,
		scripts:  s.scripts,
		clock:    s.clock,
		hints:    s.hints,
		peers:    s.peers,
		replicas: acks,
		written:  &s.formats.written,
	}
	s.owners = &owners{client: client, keys: k, clock: s.clock, peers: s.peers}
	s.announcer = &announcer{directory: s.directory, sender: s.sender, cluster: cluster}
	return s
}

// Now implements [store.Clock].
func (s *Store) Now() time.Time { return s.clock.Stamp().Time() }

// Close implements [store.Store].
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.sender.stop()
		s.peers.stop()
		s.watchers.stop()
		if err := s.client.Close(); err != nil {
			s.closeErr = fmt.Errorf("close the connections to Redis: %w", err)
		}
	})
	return s.closeErr
}
