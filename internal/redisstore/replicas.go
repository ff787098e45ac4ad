package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// The level failover: a write counts once replicas have it, and nothing is shown before. Redis
// replicates after it has answered, so that a replica that takes its primary's place may lack
// what was acknowledged. WAIT says how many replicas have what this connection has written; so
// it travels in the pipeline of each write, and its number is checked. With too few, the write
// has not been acknowledged, whatever its own reply says: the caller tries again, and the script
// recognizes a commit that was written before.
//
// Two things about WAIT matter here. It speaks of its own connection only, so everything goes
// through one pipeline to one server. And a connection that has written nothing may have
// nothing to wait for, which depends on the server's version: a commit that turns out to be
// written already would be acknowledged for nothing. So each WAIT follows a small write of its
// own. Replication is one stream, so a replica that has that write has all that came before
// it, from any process.
//
// That is also how a reader knows. It may find another process's write that nobody has
// acknowledged yet. It remembers the newest commit of each thread that it knows to be
// acknowledged; if it finds another one, it reads again, with a write and WAIT behind. Only
// the thread's head is compared: all else that a reader returns changes only with the head.

const (
	// ackTimeout is how long WAIT waits for the replicas.
	ackTimeout = time.Second
	// ackAge is how long the small writes stay.
	ackAge = 10 * time.Second
	// redirections is how often a write follows a slot that moves in the cluster.
	redirections = 6
	// maxServers is how many keys are looked at to meet each server of a large cluster.
	maxServers = 16 * 64
	// maxKnown bounds of how many threads the acknowledged commit is remembered.
	maxKnown = 100_000
)

// replicas has writes acknowledged by replicas, and reads confirmed.
type replicas struct {
	need   int           // how many replicas must have a write; 0: Redis's own answer is enough
	within time.Duration // how long WAIT waits for them
	client redis.UniversalClient
	keys   keys
	// commitOf returns the id of the commit in a head as it is stored; false if it cannot be
	// read.
	commitOf func(head string) (string, bool)
	turn     atomic.Int64 // makes keys of small writes

	mu    sync.Mutex
	known map[string]acknowledged // by the thread's tag
}

// acknowledged is the newest commit of a thread that is known to be acknowledged.
type acknowledged struct {
	commit string
	moving bool // the last reader found another one before: the next one will, too
}

// try makes a small write to each server that holds threads, and waits for its replicas. It
// fails if there are too few, or Redis does not let this user wait for them.
func (r *replicas) try(ctx context.Context) error {
	one := map[redis.Cmdable]string{} // a key of each server
	for n := range maxServers {
		key := strconv.Itoa(n)
		node, err := r.nodeOf(ctx, key)
		if err != nil {
			return err
		}
		one[node] = key
		if node == r.client {
			break
		}
	}
	for node, key := range one {
		if err := r.once(ctx, node, key, func(redis.Pipeliner) {}); err != nil {
			return err
		}
	}
	return nil
}

// exec sends what queue adds to the server that has the key, in one pipeline, and waits until
// replicas have all that is there. queue may be called several times, and every command has its
// own error besides.
func (r *replicas) exec(ctx context.Context, key string, queue func(redis.Pipeliner)) error {
	pause := 10 * time.Millisecond
	for try := 1; ; try++ {
		node, err := r.nodeOf(ctx, key)
		if err == nil {
			err = r.once(ctx, node, key, queue)
		}
		if !r.elsewhere(err) || try == redirections {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// nodeOf returns the server that has the key.
func (r *replicas) nodeOf(ctx context.Context, key string) (redis.Cmdable, error) {
	if cluster, ok := r.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return r.client, nil
}

// once is one try of exec at one server, and at the one that this sends us to because the
// key's slot is on its way there. Its error is that of a redirection, if one is left. After an
// error, the cluster is asked again who has what.
func (r *replicas) once(ctx context.Context, node redis.Cmdable, key string, queue func(redis.Pipeliner)) (err error) {
	if cluster, ok := r.client.(*redis.ClusterClient); ok {
		defer func() {
			if err != nil {
				cluster.ReloadState(ctx)
			}
		}()
	}
	pipe := node.Pipeline()
	queue(pipe)
	cmds := pipe.Cmds()
	acked := r.acked(ctx, pipe, r.keys.ack(key))
	away := askedAway(cmds)
	if _, asked := redis.IsAskError(acked); asked && (len(away) < len(cmds) || len(cmds) == 0) {
		// Only the small write is new to the slot, and new keys are made at the other server.
		beside, err := r.beside(ctx, node)
		if err != nil {
			return err
		}
		pipe = node.Pipeline()
		queue(pipe)
		cmds = pipe.Cmds()
		acked = r.acked(ctx, pipe, beside)
		away = askedAway(cmds)
	}
	if len(away) > 0 {
		if len(away) < len(cmds) && acked != nil {
			return acked
		}
		acked = r.follow(ctx, key, away)
	}
	for _, c := range cmds {
		if redirected(c.Err()) {
			return c.Err()
		}
	}
	return acked
}

// acked sends what is in the pipeline, and waits until replicas have it. ack is the key of the
// small write.
func (r *replicas) acked(ctx context.Context, pipe redis.Pipeliner, ack string) error {
	write := pipe.Set(ctx, ack, "", ackAge)
	wait := pipe.Do(ctx, "wait", r.need, r.within.Milliseconds())
	// Each command has its own error.
	_, _ = pipe.Exec(ctx)
	if err := write.Err(); err != nil {
		return err
	}
	have, err := wait.Int()
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return connection.NoWaitError{Err: err}
	case err == nil && have < r.need:
		return connection.UnacknowledgedError{Have: have, Need: r.need, Within: r.within}
	}
	return err
}

// redirected reports whether the key's slot is, or will soon be, at another server.
func redirected(err error) bool {
	if err == nil {
		return false
	}
	_, moved := redis.IsMovedError(err)
	_, asked := redis.IsAskError(err)
	return moved || asked || redis.IsTryAgainError(err)
}

// elsewhere reports whether it is worth while to look again which server has the key: it has
// moved, or the connection to it has broken. A plain client connects again by itself.
func (r *replicas) elsewhere(err error) bool {
	if _, cluster := r.client.(*redis.ClusterClient); !cluster {
		return false
	}
	var broken net.Error
	return redirected(err) || errors.Is(err, io.EOF) || errors.As(err, &broken) && !broken.Timeout()
}

// script runs a script that writes.
func (r *replicas) script(ctx context.Context, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	if r.need == 0 {
		return script.Run(ctx, r.client, keys, args...)
	}
	var reply *redis.Cmd
	err := r.exec(ctx, keys[0], func(pipe redis.Pipeliner) { reply = script.EvalSha(ctx, pipe, keys, args...) })
	if reply != nil && redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		err = r.exec(ctx, keys[0], func(pipe redis.Pipeliner) { reply = script.Eval(ctx, pipe, keys, args...) })
	}
	if reply == nil {
		reply = redis.NewCmd(ctx)
	}
	if reply.Err() == nil {
		reply.SetErr(err)
	}
	return reply
}

// write is script for one that returns a number.
func (r *replicas) write(ctx context.Context, script *redis.Script, keys []string, args ...any) (int, error) {
	return r.script(ctx, script, keys, args...).Int()
}

// read runs the commands that queue adds, all of one thread, and returns their first error. At
// level failover, all that they have read is acknowledged then. queue may be called twice.
func (r *replicas) read(ctx context.Context, tag string, queue func(redis.Pipeliner)) error {
	if r.need == 0 {
		pipe := r.client.Pipeline()
		queue(pipe)
		_, err := pipe.Exec(ctx)
		return err
	}
	var cmds []redis.Cmder
	var head *redis.StringCmd
	all := func(pipe redis.Pipeliner) {
		queue(pipe)
		cmds = pipe.Cmds()
		// The head comes last: what was read before it belongs to this head, or an older one.
		head = pipe.HGet(ctx, r.keys.thread(tag), "h")
	}
	known := r.knownOf(tag)
	if !known.moving {
		pipe := r.client.Pipeline()
		all(pipe)
		// Each command has its own error.
		_, _ = pipe.Exec(ctx)
		if is, ok := r.commit(head); !ok || is == known.commit {
			return firstError(cmds, head)
		}
	}
	err := r.exec(ctx, r.keys.thread(tag), all)
	if head == nil {
		return err // there is no server
	}
	if failed := firstError(cmds, head); failed != nil {
		return errors.Join(failed, err)
	}
	is, ok := r.commit(head)
	switch {
	case ok && is == known.commit: // which needs no replica any more
		err = nil
		r.know(tag, acknowledged{commit: is})
	case ok && err == nil:
		r.know(tag, acknowledged{is, true})
	}
	return err
}

// commit returns the id of a head's commit; false if there is no head to be read.
func (r *replicas) commit(head *redis.StringCmd) (string, bool) {
	if head.Err() != nil {
		return "", false
	}
	return r.commitOf(head.Val())
}

// firstError returns the first error of the commands, or that of the head, whose absence is no
// error.
func firstError(cmds []redis.Cmder, head *redis.StringCmd) error {
	for _, c := range cmds {
		if err := c.Err(); err != nil {
			return err
		}
	}
	if err := head.Err(); !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}

// know notes what is acknowledged of a thread.
func (r *replicas) know(tag string, is acknowledged) {
	if r.need == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxKnown {
		r.known = map[string]acknowledged{}
	}
	r.known[tag] = is
}

func (r *replicas) knownOf(tag string) acknowledged {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[tag]
}

// ack is the key of the small write that precedes WAIT. It is in the slot of the other key.
func (k keys) ack(key string) string {
	_, rest, found := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !found || !closed || tag == "" {
		tag = key
	}
	return k.prefix + "ack:{" + tag + "}"
}

// The work of level failover while a slot moves within a cluster. The keys of a thread go one
// after the other; a client that asks the old server for one that is not there is sent to the
// new one, just this once (ASK). That holds for each command by itself: a key that has not
// gone yet is not at the new server, which would only say that it does not exist, or make
// another one. Commands with several keys wait until all are at one place (TRYAGAIN).

// askedAway returns the commands that another server is to be asked for.
func askedAway(cmds []redis.Cmder) []redis.Cmder {
	var away []redis.Cmder
	for _, c := range cmds {
		if _, asked := redis.IsAskError(c.Err()); asked {
			away = append(away, c)
		}
	}
	return away
}

// follow sends commands to the server to which the key's slot is on its way, and waits until
// replicas have all that is there.
func (r *replicas) follow(ctx context.Context, key string, cmds []redis.Cmder) error {
	addr, _ := redis.IsAskError(cmds[0].Err())
	node, err := r.nodeAt(ctx, addr)
	if err != nil {
		return err
	}
	pipe := node.Pipeline()
	for _, c := range cmds {
		pipe.Do(ctx, "asking")
		// It is only queued here.
		_ = pipe.Process(ctx, c)
	}
	pipe.Do(ctx, "asking")
	// The old server may still have the key of its own small write, and would move it here.
	return r.acked(ctx, pipe, r.keys.ack(key)+":moving")
}

// nodeAt returns the server at the address.
func (r *replicas) nodeAt(ctx context.Context, addr string) (redis.Cmdable, error) {
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		return nil, fmt.Errorf("redis has sent us to %s, and is no cluster", addr)
	}
	found := make(chan redis.Cmdable, 1)
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		if c.Options().Addr == addr {
			found <- c
		}
		return nil
	})
	select {
	case node := <-found:
		return node, nil
	default:
		return nil, errors.Join(fmt.Errorf("the cluster has no master at %s", addr), err)
	}
}

// beside returns the key of a small write in another slot of the server, each time another.
func (r *replicas) beside(ctx context.Context, node redis.Cmdable) (string, error) {
	for range maxServers {
		key := r.keys.ack(strconv.FormatInt(r.turn.Add(1), 10))
		is, err := r.nodeOf(ctx, key)
		switch {
		case err != nil:
			return "", err
		case is == node:
			return key, nil
		}
	}
	return "", errLastSlot
}

// errLastSlot means that the server has no other slot, as long as this one is moving.
var errLastSlot = redisError("TRYAGAIN the last slot of this server is moving to another one")

// redisError is an error as if Redis had answered with it.
type redisError string

func (e redisError) Error() string { return string(e) }

// RedisError implements [redis.Error].
func (redisError) RedisError() {}
