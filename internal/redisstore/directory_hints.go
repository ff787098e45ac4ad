package redisstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The hints of the directory: what lets threads be found without looking at all of them. They
// are written before the commit that they announce, each process writes each of them once, and
// every reader asks the head whether it is true.

// minuteOf counts minutes since 1970. A busy thread moves in the list once a minute,
// not in every commit; the order within a minute comes from the heads. It matters that
// a later time never has a smaller minute.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// announcer writes them.
type announcer struct {
	*directory
	sender  *sender
	cluster bool
}

// commit writes the hints that are new and runs the commit script. The hint
// exists before its commit, so whatever is committed can be found. A new fence means
// that the thread was acquired, which is announced in any case.
func (s *announcer) commit(ctx context.Context, tag string, c *store.Commit, do call, lists *relisting) (int, error) {
	has, known := s.hints.get(tag)
	want := hint{
		owner:    holdfast.Principal{Tenant: c.Key.Tenant, User: c.User},
		minute:   minuteOf(c.UpdatedAt),
		process:  c.Process,
		score:    has.score,
		etag:     c.ID,
		listings: lists.is,
	}
	if lists.is == nil && has.etag == c.Expect.ETag {
		want.listings = has.listings
	}
	moves := !known || has.owner != want.owner || has.minute != want.minute
	acquires := want.process != "" && (has.process != want.process || c.Fence != c.Expect.Fence)
	if acquires {
		want.score = s.hints.score(s.clock.Stamp().Time())
	}
	says := acquires && s.peers.claims(want.process)
	var hints hintWriter
	if moves || acquires || c.Parent != "" || len(lists.added) > 0 || lists.unknown {
		hints = s.announcing(ctx, tag, c, want, lists, announced{moves, acquires, says})
	}
	n, err := s.exec(ctx, &request{hints: hints, do: do, large: isLarge(c)})
	if err != nil || n != codeOK {
		// The head does not say what this commit says of the thread, or may not.
		s.hints.drop(tag)
		return n, err
	}
	s.hints.put(tag, want)
	s.settle(ctx, tag, c, &has, known, lists)
	return n, nil
}

// announced is what is said of a commit before it is made: the thread moves in the lists of its
// owner, the process acquires it, and the others are told.
type announced struct{ moves, acquires, says bool }

// announcing returns what writes that. It is apart, because most commits need nothing of it.
func (s *announcer) announcing(
	ctx context.Context, tag string, c *store.Commit, want hint, lists *relisting, what announced,
) hintWriter {
	return func(pipe redis.Pipeliner) (cmds []redis.Cmder) {
		cmds = lists.add(ctx, pipe, s.keys, tag)
		if c.Parent != "" {
			parent := store.ThreadKey{Tenant: c.Key.Tenant, Thread: c.Parent}
			cmds = append(cmds, pipe.ZAdd(ctx, s.keys.children(parent), redis.Z{Member: c.Key.Thread}))
		}
		if what.moves {
			for _, w := range s.dates(want.owner, c.Key.Thread, want.minute) {
				cmds = append(cmds, pipe.ZAdd(ctx, w.key, w.Z))
			}
		}
		if what.acquires {
			cmds = append(cmds, pipe.ZAddNX(ctx, s.keys.leases(),
				redis.Z{Score: float64(want.score), Member: want.process}),
				pipe.ZAdd(ctx, s.keys.owned(want.process), redis.Z{Score: float64(want.score), Member: tag}))
		}
		if what.says { // the commit is made even if this fails
			pipe.Publish(ctx, s.keys.peersChannel(), newsClaims+want.process)
		}
		return cmds
	}
}

// settle removes the hints that a commit has made wrong. If this fails, their readers find that
// they are.
func (s *announcer) settle(ctx context.Context, tag string, c *store.Commit, has *hint, known bool, lists *relisting) {
	if c.Process != "" && has.minute == minuteOf(c.UpdatedAt) && has.owner.User == c.User && lists.is == nil {
		return // most commits make none wrong
	}
	pipe := s.client.Pipeline()
	if c.Process == "" && has.process != "" {
		// No other member of the set has the score, and the thread has another one if its hint was written again.
		score := strconv.FormatInt(has.score, 10)
		pipe.ZRemRangeByScore(ctx, s.keys.owned(has.process), score, score)
	}
	for _, d := range []dated{s.keys.everybody(c.Key.Tenant), s.keys.threadsOf(has.owner)} {
		if was := d.of(has.minute); known && (was != d.of(minuteOf(c.UpdatedAt)) || !d.all && d.user != c.User) {
			pipe.ZRem(ctx, s.keys.span(&d, was), c.Key.Thread)
		}
	}
	lists.learn(c.Key, s.values)
	lists.remove(ctx, pipe, s.keys, tag)
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx)
	}
}

// exec writes the hints and then the commit. A single server keeps the order
// of a pipeline; the nodes of a cluster do not.
func (s *announcer) exec(ctx context.Context, r *request) (int, error) {
	if s.cluster && r.hints != nil {
		if err := s.replicas.announce(ctx, r.hints); err != nil {
			return 0, err
		}
		r.hints = nil
	}
	return s.sender.submit(ctx, r)
}

// unlist removes the hints of a deleted thread. The lists of spans and that of processes stay. It reports
// whether there is such a thread again: then it may have taken hints of that one.
func (s *announcer) unlist(ctx context.Context, head *store.Head, hints []want) (again bool, err error) {
	owner := holdfast.Principal{Tenant: head.Key.Tenant, User: head.User}
	stays := []string{s.keys.days(owner.Tenant), s.keys.threadsOf(owner).spans, s.keys.leases()}
	pipe := s.client.Pipeline()
	pipe.ZRem(ctx, s.keys.active(owner), head.Key.Thread)
	for _, w := range hints {
		if !slices.Contains(stays, w.key) {
			pipe.ZRem(ctx, w.key, w.Member)
		}
	}
	there := pipe.Exists(ctx, s.keys.thread(tag(head.Key)))
	if _, err := pipe.Exec(ctx); err != nil {
		return false, failed("unlist thread "+head.Key.String(), err)
	}
	return there.Val() > 0, nil
}
