package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// The way of commits to Redis: a few goroutines, which take what has gathered, send it in one
// pipeline, and hand each commit its result. How they do so at level failover is in
// replicas_send.go.

const (
	// senders is how many pipelines of commits are sent at a time, and maxPipeline how
	// many commits each can hold. The client's own timeouts bound a pipeline, so one
	// that hangs does not stop all commits.
	senders     = 2
	maxPipeline = 64
)

var errClosed = errors.New("the store is closed")

// sender sends commits to Redis. The commits that arrive while pipelines are on their
// way go together in the next one: nobody waits for a timer, and the more runs write,
// the fewer round trips each of them costs.
type sender struct {
	requests chan *request // unbuffered: until a request is taken, submit can withdraw it
	large    chan *request // likewise
	closing  chan struct{}
	running  sync.WaitGroup
	client   redis.UniversalClient
	replicas *replicas
}

// start starts the goroutines that send; the caller must call stop.
func (c *sender) start(client redis.UniversalClient, replicas *replicas) {
	c.client, c.replicas = client, replicas
	c.requests, c.large, c.closing = make(chan *request), make(chan *request), make(chan struct{})
	for range senders {
		c.running.Go(func() { c.run(c.requests, maxPipeline) })
	}
	c.running.Go(func() { c.run(c.large, 1) })
}

// stop waits for what is on its way. Later requests fail.
func (c *sender) stop() {
	close(c.closing)
	c.running.Wait()
}

// submit hands a commit over and waits for its result. Until the commit is taken, a
// cancelled context leaves no trace of it; after that it is sent in any case.
func (c *sender) submit(ctx context.Context, r *request) (int, error) {
	r.done = make(chan result, 1)
	to := c.requests
	if r.large {
		to = c.large
	}
	select {
	case to <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-c.closing:
		return 0, errClosed
	}
	select {
	case res := <-r.done:
		return res.code, res.err
	case <-ctx.Done():
		return 0, fmt.Errorf("stopped waiting for a commit that was sent; its result is unknown: %w", ctx.Err())
	}
}

// run sends what there is, at most so many at a time, again and again, until stop is
// called.
func (c *sender) run(requests <-chan *request, most int) {
	var batch []*request
	for {
		select {
		case r := <-requests:
			batch = append(batch[:0], r)
		case <-c.closing:
			return
		}
		for waiting := true; waiting && len(batch) < most; {
			select {
			case r := <-requests:
				batch = append(batch, r)
			default:
				waiting = false
			}
		}
		c.send(batch)
	}
}

// send runs the batch and hands each request its result.
func (c *sender) send(batch []*request) {
	if c.replicas.need > 0 {
		c.replicas.send(batch)
		return
	}
	ctx := context.Background()
	if len(batch) == 1 && batch[0].hints == nil {
		code, err := batch[0].do.run(ctx, c.client)
		batch[0].done <- result{code, err}
		return
	}
	pipe := c.client.Pipeline()
	var appends together
	for _, r := range batch {
		if r.hints != nil {
			r.hinted = r.hints(pipe)
		}
		if r.do.appends && !isCluster(c.client) { // whose slots rarely have two threads of a batch
			appends.add(r)
			continue
		}
		r.reply = pipe.EvalSha(ctx, r.do.script.Hash(), r.do.keys, r.do.args...)
	}
	appends.call(ctx, pipe)
	// Each command has its own error, which is read below.
	_, _ = pipe.Exec(ctx)
	for _, r := range batch {
		code, err := codeOf(r.reply, r.place)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			// Redis has forgotten the script, and a pipeline cannot fall back to its text.
			code, err = r.do.run(ctx, c.client)
		}
		errs := []error{err}
		for _, h := range r.hinted {
			// The commit may have been written; trying again then writes only the hints.
			errs = append(errs, h.Err())
		}
		r.done <- result{code, connection.Join(errs...)}
	}
}

// together are commits that only append, of which one call of their script writes all.
type together []*request

func (t *together) add(r *request) {
	r.place = len(*t)
	*t = append(*t, r)
}

// call adds the call to a pipeline.
func (t together) call(ctx context.Context, pipe redis.Pipeliner) {
	if len(t) == 0 {
		return
	}
	var keys []string
	var args []any
	for _, r := range t {
		keys, args = append(keys, r.do.keys...), append(args, r.do.args...)
	}
	reply := pipe.EvalSha(ctx, t[0].do.script.Hash(), keys, args...)
	for _, r := range t {
		r.reply = reply
	}
}
