package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

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
