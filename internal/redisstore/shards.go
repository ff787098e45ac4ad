package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// In a cluster, each message goes to every node, whether anybody listens there or not. Since Redis 7
// there are channels of the shards: a channel is in a slot, as a key is, and its messages stay with the
// nodes of that slot. The commits of a thread are published on one, and so are the posts to the threads
// of a process.
//
// A listener has one connection to each node that has any of its channels. go-redis would connect again
// by itself, but then it subscribes to all of them in one command, which Redis refuses for channels of
// several slots. So what breaks is given up here, and its channels are subscribed to again one by one,
// at the nodes that have them by then. Each confirmed subscription wakes, because nothing was heard of
// what came before it.

const (
	// shardPing is how long a connection is silent before it is asked whether it is still there, and
	// how long it may take to answer.
	shardPing = 5 * time.Second
	// shardPause is what passes before channels whose connection broke, or whose slot has moved, are
	// subscribed to again: the cluster takes a moment to say where they are.
	shardPause = 100 * time.Millisecond
	// shardRefused is how long nothing is subscribed to after Redis has not allowed it.
	shardRefused = time.Minute
)

// shards are the subscriptions to channels of shards.
type shards struct {
	client *redis.ClusterClient
	// heard is given what is published, and is called with nothing when a subscription begins.
	heard func(channel, payload string)
	// again has somebody subscribe to what is lost.
	again func()

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	nodes   map[string]*shard // by address
	of      map[string]*shard // by channel
	missing map[string]bool   // the channels to subscribe to again
	refused clock.Moment      // when Redis has not allowed it
}

// shard is the connection to a node.
type shard struct {
	addr   string
	pubsub *redis.PubSub
}

// errNoShards means that Redis does not allow this user to subscribe to channels of shards.
var errNoShards = errors.New("no channels of shards")

// shardsOf returns the subscriptions of a process; nil if the client is of no cluster, or of one whose
// shards have no channels for it. The caller must call stop.
func shardsOf(ctx context.Context, client redis.UniversalClient, k keys, log *slog.Logger) *shards {
	cluster, is := client.(*redis.ClusterClient)
	if !is {
		return nil
	}
	if err := cluster.SPublish(ctx, k.inboxChannel(), "").Err(); connection.Forbidden(err) {
		log.Info("what servers tell each other about threads goes to all nodes of the cluster; with Redis 7 and the "+
			"permissions spublish and ssubscribe it would stay with those of the thread", "error", err)
		return nil
	}
	s := &shards{client: cluster, nodes: map[string]*shard{}, of: map[string]*shard{}, missing: map[string]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// stop ends the subscriptions, and waits until nothing is heard any more.
func (s *shards) stop() {
	s.cancel()
	s.mu.Lock()
	for _, n := range s.nodes {
		// This ends what receives from it. The only error is that it is closed.
		_ = n.pubsub.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// subscribe has the channel heard at the node that has its slot. Only one goroutine calls it.
func (s *shards) subscribe(ctx context.Context, channel string) error {
	node, err := s.client.MasterForKey(ctx, channel)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRefused() || s.ctx.Err() != nil {
		return errNoShards
	}
	addr, before := node.Options().Addr, s.of[channel]
	if before != nil && before.addr == addr {
		return nil
	}
	to := s.nodes[addr]
	if to == nil {
		to = &shard{addr: addr, pubsub: node.SSubscribe(s.ctx)}
		s.nodes[addr] = to
		s.running.Go(func() { s.listen(to) })
	}
	s.of[channel] = to
	delete(s.missing, channel)
	if before != nil {
		// If this fails, some wake-ups are spurious, which does no harm.
		_ = before.pubsub.SUnsubscribe(ctx, channel)
	}
	return to.pubsub.SSubscribe(ctx, channel) // if this fails, listen notices
}

// unsubscribe ends what subscribe began.
func (s *shards) unsubscribe(ctx context.Context, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.missing, channel)
	if at := s.of[channel]; at != nil {
		delete(s.of, channel)
		// If this fails, some wake-ups are spurious, which does no harm.
		_ = at.pubsub.SUnsubscribe(ctx, channel)
	}
}

// lost returns the channels that are to be subscribed to again.
func (s *shards) lost() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.missing))
}

// refuses reports whether Redis does not allow these subscriptions.
func (s *shards) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isRefused()
}

// isRefused reports whether it has not allowed them a moment ago. The caller holds mu.
func (s *shards) isRefused() bool { return !s.refused.Never() && s.refused.Ran() < shardRefused }

// listen passes on what is published at a node, until the connection breaks.
func (s *shards) listen(n *shard) {
	var err error
	for asked := false; err == nil; {
		var m any
		m, err = n.pubsub.ReceiveTimeout(s.ctx, shardPing)
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() && !asked && s.ctx.Err() == nil {
			asked, err = true, n.pubsub.Ping(s.ctx)
			continue
		}
		asked = false
		switch m := m.(type) {
		case *redis.Message:
			s.heard(m.Channel, m.Payload)
		case *redis.Subscription:
			if m.Kind == "ssubscribe" {
				s.heard(m.Channel, "")
			} else {
				s.left(n, m.Channel)
			}
		}
	}
	s.broke(n, err)
}

// left notes that a node has ended a subscription. If nobody has asked it to, the slot has moved.
func (s *shards) left(n *shard, channel string) {
	s.mu.Lock()
	moved := s.of[channel] == n
	if moved {
		delete(s.of, channel)
		s.missing[channel] = true
	}
	s.mu.Unlock()
	if moved {
		s.seek()
	}
}

// broke gives up the connection to a node.
func (s *shards) broke(n *shard, err error) {
	s.mu.Lock()
	if _, moved := redis.IsMovedError(err); !moved && connection.Forbidden(err) {
		s.refused = clock.Now()
	}
	delete(s.nodes, n.addr)
	for channel, at := range s.of {
		if at == n {
			delete(s.of, channel)
			s.missing[channel] = true
		}
	}
	s.mu.Unlock()
	// The only error is that it is closed.
	_ = n.pubsub.Close()
	s.seek()
}

// seek has what is lost subscribed to again, once the cluster was asked where it is.
func (s *shards) seek() {
	if s.ctx.Err() != nil {
		return
	}
	s.client.ReloadState(s.ctx)
	time.AfterFunc(shardPause, s.again)
}
