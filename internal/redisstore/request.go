package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// request is a commit, with the hints that must be written before it.
type request struct {
	hints hintWriter // nil without any
	do    call
	large bool
	// what Redis replies to them
	hinted []redis.Cmder
	reply  *redis.Cmd
	place  int         // among those that the reply is for
	call   int         // without the client: which of the calls it is part of
	done   chan result // holds one
}

// hintWriter adds the commands that write hints to a pipeline, and returns them.
type hintWriter func(redis.Pipeliner) []redis.Cmder

// result is what the commit script returned.
type result struct {
	code int
	err  error
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
	keys, args := t.all()
	reply := pipe.EvalSha(ctx, t[0].do.script.Hash(), keys, args...)
	for _, r := range t {
		r.reply = reply
	}
}

// all returns the keys and the arguments of the call.
func (t together) all() (keys []string, args []any) {
	if len(t) == 1 {
		return t[0].do.keys, t[0].do.args
	}
	for _, r := range t {
		keys, args = append(keys, r.do.keys...), append(args, r.do.args...)
	}
	return keys, args
}
