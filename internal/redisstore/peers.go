package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// How processes notice that one of them has died. No process connects to another. Each
// subscribes to a channel of its own, on two connections, and the kernel closes both when
// the process dies, so Redis counts no subscriber any more. The others ask for those
// counts, all in one command. Nothing is published on these channels: what counts is who
// listens (judge.go says what follows from it).
//
// A process that is suspended, or cut off without being told, keeps its connections, so
// nothing is seen here, and its lease decides. So it does wherever subscribers cannot be
// counted.
//
// looks.go says when.

const (
	// presencePause is the longest pause between two tries to connect, and refusedPause the
	// one after Redis has refused.
	presencePause = time.Second
	refusedPause  = time.Minute
	// followWithin is how long connections stay at a Redis that another one has replaced. The
	// sentinels tell each other of it within two seconds, and then those that asked them.
	followWithin = 10 * time.Second
)

// peers is what this process shows of itself, and knows of the others.
type peers struct {
	client   redis.UniversalClient
	keys     keys
	watchers *watchers
	roster   *roster
	clock    *clock.Remote

	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	changed chan struct{} // there may be somebody to watch
	link    link

	mu    sync.Mutex
	own   string // the process that was announced here; "" if none was
	shown []*redis.PubSub
	said  time.Time // when it last said that it claims threads
	told  bool      // the log has that subscribers cannot be counted
	judge judge
	crowd crowd
	lease time.Duration // how long a lease lasts
	// renewals counts how often the lease was renewed.
	renewals int
	closed   bool

	following atomic.Bool // follow runs
}

// newPeers returns what a process has of them. Nothing runs before the first process is
// announced. The caller must call stop.
func newPeers(
	client redis.UniversalClient, k keys, w *watchers, r *roster, now *clock.Remote, log *slog.Logger,
) *peers {
	p := &peers{
		client:   client,
		keys:     k,
		watchers: w,
		roster:   r,
		clock:    now,
		log:      log,
		changed:  make(chan struct{}, 1),
		judge:    newJudge(),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// stop ends the connections and waits for the goroutines.
func (p *peers) stop() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	for _, shown := range p.shown {
		if shown == nil {
			continue
		}
		// This ends what receives from it. The only error is that it is closed.
		_ = shown.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// announced begins to show that the process lives, unless one was announced here before;
// then it returns false.
func (p *peers) announced(process string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own != "" || p.closed {
		return false
	}
	p.own = process
	p.othersOwn() // they may: what they have said before was not heard here
	p.shown = make([]*redis.PubSub, presences)
	for n := range p.shown {
		p.running.Go(func() { p.show(n, nil, p.keys.shown(process)) })
	}
	p.running.Go(p.watch)
	return true
}

// show keeps the connection with this number subscribed to the process's channels, until
// another one is put in its place, or p is stopped. At first it is the one that is shown, if
// there is one.
func (p *peers) show(n int, shown *redis.PubSub, channels []string) {
	pause := time.Duration(0)
	for {
		if shown = p.connection(n, shown); shown == nil {
			return
		}
		began := time.Now()
		err, worked := p.subscribe(p.ctx, shown, channels), false
		if err == nil {
			worked, err = receive(p.ctx, shown, func() { p.link.connected(time.Since(began)) })
		}
		var reply redis.Error
		again := errors.As(err, &reply) || errors.Is(err, errMoved) // otherwise go-redis connects again
		switch {
		case p.ctx.Err() != nil || !p.broke(n, shown, again):
			return
		case connection.Forbidden(err):
			p.refused(err)
			pause = refusedPause
		case worked:
			pause = 0
		default:
			pause = min(2*pause+time.Millisecond, presencePause)
		}
		p.wait(pause)
	}
}

// broke notes that the connection with this number has broken; it returns false if another
// one is in its place. If it is of no use any more, it is closed, so that the next one is new.
func (p *peers) broke(n int, shown *redis.PubSub, useless bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown[n] != shown {
		return false
	}
	p.judge.broken()
	if useless {
		// The only error is that it is closed.
		_ = shown.Close()
		p.shown[n] = nil
	}
	return true
}

// connection returns the connection with this number, which was the one before if there was
// one; nil once p is stopped, or another one is in its place.
func (p *peers) connection(n int, before *redis.PubSub) *redis.PubSub {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch is := p.shown[n]; {
	case p.closed:
		return nil
	case is == nil:
		p.shown[n] = p.open()
	case before != nil && is != before:
		return nil
	}
	return p.shown[n]
}

// open returns a connection that is not subscribed yet. In a cluster the channel belongs to
// one node, as a key does, so that all count the same subscribers.
func (p *peers) open() *redis.PubSub {
	if cluster, ok := p.client.(*redis.ClusterClient); ok {
		return cluster.SSubscribe(p.ctx)
	}
	return p.client.Subscribe(p.ctx)
}

// followSoon has follow run, unless it does. The renewal does not wait for it: a lease is as
// good as its answer is quick.
func (p *peers) followSoon(within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.following.CompareAndSwap(false, true) {
		return
	}
	// It belongs to this renewal, however soon the next one comes.
	reminds := p.crowd.living > manyProcesses || p.renewals%remindEvery == 2
	p.running.Go(func() {
		defer p.following.Store(false)
		p.follow(p.ctx, within)
		if reminds { // the others of what this process owns
			p.remind(p.ctx)
		}
	})
}

// follow makes sure, after the lease was renewed, that the subscriptions are at the Redis
// that the commands go to. When Sentinel is asked for a failover, the old master lives on for
// some seconds, and so do the connections that nothing is sent on: nobody counts them there
// any more, and hears nothing on them. It gives up after within, because the next renewal comes
// after this one.
func (p *peers) follow(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p.mu.Lock()
	channels := p.keys.shown(p.own)
	subscribed := len(p.shown) > 0 && !slices.Contains(p.shown, nil)
	p.mu.Unlock()
	if !subscribed {
		return
	}
	if counts, err := p.count(ctx, channels[:1]); err != nil || counts[channels[0]] >= presences {
		return
	}
	for n := range presences {
		p.replace(ctx, n, channels)
	}
	p.watchers.follow()
}

// replace puts a new connection in the place of the one with this number. The old one stays
// for a while: the others may not have followed yet, and would take this process for dead.
func (p *peers) replace(ctx context.Context, n int, channels []string) {
	next := p.open()
	err := p.subscribe(ctx, next, channels)
	if err == nil {
		_, err = next.ReceiveTimeout(ctx, presencePause) // until Redis has subscribed it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.shown[n]
	if err != nil || p.closed || old == nil {
		_ = next.Close() // what is there stays; the next renewal looks again
		return
	}
	p.shown[n] = next
	p.judge.broken() // what was counted elsewhere says nothing here
	p.running.Go(func() { p.show(n, next, channels) })
	p.running.Go(func() {
		p.wait(followWithin)
		// This ends what receives from it. The only error is that it is closed.
		_ = old.Close()
	})
}

// subscribe subscribes the connection.
func (p *peers) subscribe(ctx context.Context, shown *redis.PubSub, channels []string) error {
	if cluster, ok := p.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // the channels' node may be another one now
		return shown.SSubscribe(ctx, channels...)
	}
	return shown.Subscribe(ctx, channels...)
}

// wait waits for d, or until p is stopped.
func (p *peers) wait(d time.Duration) {
	select {
	case <-p.ctx.Done():
	case <-time.After(d):
	}
}

// refused says once in the log that Redis does not let subscribers be counted.
func (p *peers) refused(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told {
		p.told = true
		p.log.Warn(
			"Redis does not let this server count subscribers, so it notices the death of others only when their "+
				"leases end; allow the commands subscribe and pubsub and the channels "+p.keys.prefix+
				"* (in a cluster ssubscribe, of Redis 7)",
			"error",
			err,
		)
	}
}

// count returns how many subscribers each channel has.
func (p *peers) count(ctx context.Context, channels []string) (map[string]int64, error) {
	cluster, ok := p.client.(*redis.ClusterClient)
	if !ok {
		return p.client.PubSubNumSub(ctx, channels...).Result()
	}
	node, err := cluster.MasterForKey(ctx, channels[0])
	if err != nil {
		return nil, err
	}
	return node.PubSubShardNumSub(ctx, channels...).Result()
}

// change has watch look at who is to be watched.
func (p *peers) change() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// missing reports whether the process was there and is not to be seen at the moment.
func (p *peers) missing(process string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.judge.others[process]
	return o != nil && (o.gone || !o.missing.IsZero())
}

// gone reports whether the process was seen to be gone and has not renewed its lease,
// which ends then, since.
func (p *peers) gone(process string, until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.judge.isGone(process, until)
}

// How many renewals of the lease are for one look at what changes rarely: in a large fleet all of them
// would be too many.
const remindEvery, rareEvery, manyProcesses = 3, 9, 32

// renews notes that the lease is renewed, for so long. It reports whether what changes rarely is to be
// looked at, too.
func (p *peers) renews(lease time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = lease
	p.renewals++
	return p.crowd.living <= manyProcesses || p.renewals%rareEvery == 1
}
