package redisstore

import (
	"context"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// How commits are sent at level failover: as always many in one pipeline, and one WAIT for all
// of them. In a cluster, each server has its own.

// send runs the batch and hands each request its result.
func (r *replicas) send(batch []*request) {
	ctx := context.Background()
	if _, cluster := r.client.(*redis.ClusterClient); !cluster {
		r.sendTo(ctx, r.client, batch)
		return
	}
	groups := map[redis.Cmdable][]*request{}
	for _, q := range batch {
		node, err := r.nodeOf(ctx, q.do.keys[0])
		if err != nil {
			q.done <- result{0, err}
			continue
		}
		groups[node] = append(groups[node], q)
	}
	var sent sync.WaitGroup
	for node, group := range groups {
		sent.Go(func() { r.sendTo(ctx, node, group) })
	}
	sent.Wait()
}

// sendTo sends requests to one server. If it does not know a script, or not all of them belong
// to it any more, they are sent again, each alone.
func (r *replicas) sendTo(ctx context.Context, node redis.Cmdable, batch []*request) {
	pipe := node.Pipeline()
	for _, q := range batch {
		if q.hints != nil {
			q.hinted = q.hints(pipe)
		}
		q.reply = q.do.script.EvalSha(ctx, pipe, q.do.keys, q.do.args...)
	}
	err := r.acked(ctx, pipe, r.keys.ack(batch[0].do.keys[0]))
	for _, q := range batch {
		reply, acked := q.reply, err
		if r.elsewhere(err) || r.elsewhere(reply.Err()) || redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
			reply, acked = r.script(ctx, q.do.script, q.do.keys, q.do.args...), nil
		}
		code, failed := codeOf(reply, 0)
		errs := []error{failed, acked}
		for _, h := range q.hinted {
			errs = append(errs, h.Err())
		}
		q.done <- result{code, connection.Join(errs...)}
	}
}

// announce writes hints in a cluster, whose servers have them: each of them is as much
// needed after a failover as the commit that it announces.
func (r *replicas) announce(ctx context.Context, hints hintWriter) error {
	pipe := r.client.Pipeline()
	hinted := hints(pipe)
	var errs []error
	if r.need == 0 {
		// Each command has its own error.
		_, _ = pipe.Exec(ctx)
		for _, h := range hinted {
			errs = append(errs, h.Err())
		}
		return connection.Join(errs...)
	}
	var mu sync.Mutex
	var sent sync.WaitGroup
	for _, c := range pipe.Cmds() {
		key, _ := c.Args()[1].(string)
		sent.Go(func() {
			err := r.exec(ctx, key, func(pipe redis.Pipeliner) {
				// It is only queued here.
				_ = pipe.Process(ctx, c)
			})
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, c.Err(), err)
		})
	}
	sent.Wait()
	return connection.Join(errs...)
}
