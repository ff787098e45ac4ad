package fakeredis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Goroutines of a server that ask Redis at the same moment do so in a certain order: of two requests with
// the same bytes, nobody could tell on a connection whose each is.

// order has a client's commands wait for their turn. It implements [redis.Hook].
type order struct {
	turn func(ctx context.Context, name, detail string)
}

// DialHook implements [redis.Hook].
func (o order) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (o order) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		o.wait(ctx, cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (o order) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		o.wait(ctx, cmds...)
		return next(ctx, cmds)
	}
}

// wait waits for the turn of commands. A greeting has none: the client of subscriptions keeps a lock until
// it is answered, and virtual time stands still for those who wait for that.
func (o order) wait(ctx context.Context, cmds ...redis.Cmder) {
	greets := func(cmd redis.Cmder) bool { return greetings[strings.ToUpper(cmd.Name())] }
	if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return !greets(cmd) }) {
		return
	}
	o.turn(ctx, cmds[0].Name(), detailOf(cmds...))
}

// detailOf returns all that commands say.
func detailOf(cmds ...redis.Cmder) string {
	var all []byte
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			switch a := arg.(type) {
			case string:
				all = append(all, a...)
			case []byte:
				all = append(all, a...)
			default:
				all = fmt.Append(all, a)
			}
			all = append(all, ' ')
		}
	}
	return string(all)
}
