package redisstore

import "github.com/redis/go-redis/v9"

// request is a commit, with the hints that must be written before it.
type request struct {
	hints hintWriter // nil without any
	do    call
	large bool
	// what Redis replies to them
	hinted []redis.Cmder
	reply  *redis.Cmd
	place  int         // among those that the reply is for
	done   chan result // holds one
}

// hintWriter adds the commands that write hints to a pipeline, and returns them.
type hintWriter func(redis.Pipeliner) []redis.Cmder

// result is what the commit script returned.
type result struct {
	code int
	err  error
}
