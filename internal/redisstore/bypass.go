package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/redisstore/direct"
)

// Commits that go to a single Redis need no client: see package direct. Those that announce
// something do, and whatever fails is repeated there, which is as if the client had repeated it:
// a commit that was written before says so.

// directTo returns what makes direct connections to where the client connects; nil if that is not
// one Redis whose address stays the same.
func directTo(client redis.UniversalClient) func() *direct.Line {
	single, is := client.(*redis.Client)
	if !is {
		return nil
	}
	return func() *direct.Line { return direct.New(single.Options()) }
}

// bypass sends commits past the client. One goroutine uses it.
type bypass struct {
	*direct.Line
	client redis.UniversalClient
}

// newBypass returns one with a connection of its own; nil if there is nothing to connect to.
func newBypass(to func() *direct.Line, client redis.UniversalClient) *bypass {
	if to == nil {
		return nil
	}
	return &bypass{to(), client}
}

// send makes the commits and hands each request its result. It reports whether it has: otherwise
// the client is to do it.
func (b *bypass) send(batch []*request) bool {
	if !b.IsOpen() {
		return false
	}
	var appends together
	calls := make([]direct.Call, 0, len(batch))
	for _, r := range batch {
		switch {
		case r.hints != nil:
			return false
		case r.do.appends:
			appends.add(r)
		default:
			r.call, r.place = len(calls), 0
			calls = append(calls, direct.Call{Hash: r.do.script.Hash(), Keys: r.do.keys, Args: r.do.args})
		}
	}
	if len(appends) > 0 {
		keys, args := appends.all()
		for _, r := range appends {
			r.call = len(calls)
		}
		calls = append(calls, direct.Call{Hash: appends[0].do.script.Hash(), Keys: keys, Args: args})
	}
	if b.Do(calls) != nil {
		return false
	}
	for _, r := range batch {
		if got := &calls[r.call]; !got.Refused && r.place < len(got.Results) {
			r.done <- result{code: got.Results[r.place]}
			continue
		}
		// Redis has forgotten the script, or takes no commits, and another one may be the right one by now.
		b.Close()
		code, err := r.do.run(context.Background(), b.client)
		r.done <- result{code, err}
	}
	return true
}
