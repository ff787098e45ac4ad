package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The Directory role. Lists are read from hints and checked against the heads; a hint
// that has been wrong for long is corrected on the way. Walk looks at the keys
// themselves, and needs no hint.

// directory finds threads.
type directory struct {
	client   redis.UniversalClient
	keys     keys
	values   *values
	scripts  *scripts
	clock    *clock.Remote
	hints    *hints
	peers    *peers
	replicas *replicas
	written  *written
}

// Threads implements [store.Directory].
func (s *Store) Threads(
	ctx context.Context, owner holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	list := s.keys.threadsOf(owner)
	heads, err := s.directory.dated(ctx, &list, before, limit)
	if err != nil {
		return nil, err
	}
	early, err := s.directory.recent(ctx, &listing{
		key:    s.keys.active(owner),
		tenant: owner.Tenant,
		mine:   func(h *store.Head) bool { return h.User == owner.User },
	}, before, limit)
	if err != nil || len(early) == 0 {
		return heads, err
	}
	heads = append(heads, early...)
	sortHeads(heads)
	seen := map[store.ThreadKey]bool{}
	heads = slices.DeleteFunc(heads, func(h store.Head) bool {
		again := seen[h.Key]
		seen[h.Key] = true
		return again
	})
	return heads[:min(len(heads), max(limit, 0))], nil
}

// listing is a set of a tenant's threads, by the minutes of their last activity.
type listing struct {
	key, tenant string
	// mine reports whether a thread belongs in the set, as far as its head can be read.
	mine func(*store.Head) bool
}

// recent reads the threads by the minutes of their hints, newest first, until there are enough
// that no other can precede, and orders them by their heads.
func (s *directory) recent(ctx context.Context, l *listing, before time.Time, limit int) ([]store.Head, error) {
	set := cursor{
		key:    l.key,
		newest: true,
		rest:   redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(max(limit, 0) + 16)},
	}
	if !before.IsZero() {
		set.rest.Max = strconv.FormatInt(minuteOf(before), 10)
	}
	var heads []store.Head
	for limit > 0 {
		if set.ask(ctx, s.client); set.reply.Err() != nil {
			return nil, failed("list threads", set.reply.Err())
		}
		found, err := s.confirm(ctx, l, set.take())
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			if before.IsZero() || h.UpdatedAt.Before(before) {
				heads = append(heads, h)
			}
		}
		// The others may have threads ahead of them that were not read yet.
		sure := slices.DeleteFunc(slices.Clone(heads), func(h store.Head) bool {
			return !set.past(minuteOf(h.UpdatedAt))
		})
		if set.done || len(sure) >= limit {
			heads = sure
			break
		}
	}
	sortHeads(heads)
	// A thread that moved during the reading appears twice.
	heads = slices.CompactFunc(heads, func(a, b store.Head) bool { return a.Key == b.Key })
	return heads[:min(len(heads), max(limit, 0))], nil
}

// confirm reads the heads of the threads in the hints, returns those that belong in the list,
// and corrects hints that have been wrong for long.
func (s *directory) confirm(ctx context.Context, l *listing, entries []redis.Z) ([]store.Head, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.SliceCmd, len(entries))
	keyOf := func(i int) store.ThreadKey { return store.ThreadKey{Tenant: l.tenant, Thread: member(entries[i])} }
	for i := range entries {
		replies[i] = pipe.HMGet(ctx, s.keys.thread(tag(keyOf(i))), fieldLayout, "h", fieldUser)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("list threads", err)
	}
	var heads []store.Head
	mend := s.client.Pipeline()
	for i, reply := range replies {
		key := keyOf(i)
		old := int64(entries[i].Score) < minuteOf(s.clock.Stamp().Add(-hintAge).Time())
		h, err := decodeHead(key, reply.Val())
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && !l.mine(h):
			if old {
				mend.ZRem(ctx, l.key, key.Thread)
			}
			continue
		case err != nil:
			// A hint alone does not say whose the thread is: it is written before the commit,
			// which may fail.
			if known := ownedBy(key, reply.Val()[2]); known != nil {
				known.UpdatedAt, known.Unreadable = time.Unix(int64(entries[i].Score)*60, 0).UTC(), err
				if l.mine(known) {
					heads = append(heads, *known)
				}
			}
			continue
		}
		if is := minuteOf(h.UpdatedAt); is != int64(entries[i].Score) && (old || is > int64(entries[i].Score)) {
			mend.ZAdd(ctx, l.key, redis.Z{Score: float64(is), Member: key.Thread})
		}
		heads = append(heads, *h)
	}
	// Anything that this fails to correct is corrected the next time.
	_, _ = mend.Exec(ctx)
	return heads, nil
}

// Owned implements [store.Directory]. The hints name the threads to look at;
// their heads say who owns them.
func (s *Store) Owned(ctx context.Context) ([]store.OwnedThread, error) {
	processes, err := s.client.ZRangeWithScores(ctx, s.keys.leases(), 0, -1).Result()
	if err != nil {
		return nil, failed("list processes", err)
	}
	pipe := s.client.Pipeline()
	sets := make([]*redis.ZSliceCmd, len(processes))
	for i := range processes {
		sets[i] = pipe.ZRangeWithScores(ctx, s.keys.owned(member(processes[i])), 0, -1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("list owned threads", err)
	}
	var found []claim
	mend := s.client.Pipeline()
	for i := range processes {
		if len(sets[i].Val()) == 0 && int64(processes[i].Score) < s.clock.Stamp().Add(-processAge).Time().UnixMicro() {
			mend.ZRem(ctx, s.keys.leases(), processes[i].Member)
		}
		for _, z := range sets[i].Val() {
			found = append(found, claim{process: member(processes[i]), tag: member(z), score: int64(z.Score)})
		}
	}
	owned, err := s.directory.confirmOwned(ctx, found, mend)
	if err == nil {
		// Anything that this fails to correct is corrected the next time.
		_, _ = mend.Exec(ctx)
		owners := map[string]bool{}
		for _, o := range owned {
			owners[o.Process] = true
		}
		s.peers.listed(owners)
	}
	return owned, err
}

// confirmOwned returns what the heads say about the claimed threads. It adds to mend the
// removal of hints that are wrong, and whose commit is not on the way: because they have been
// there for long, or because the head has moved since they were seen first. A commit that
// they announce expects an older head then.
func (s *directory) confirmOwned(
	ctx context.Context, claims []claim, mend redis.Pipeliner,
) ([]store.OwnedThread, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.StringCmd, len(claims))
	for i := range claims {
		replies[i] = pipe.HGet(ctx, s.keys.thread(claims[i].tag), "h")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed("list owned threads", err)
	}
	now := s.clock.Stamp()
	old := now.Add(-hintAge).Time().UnixMicro()
	seen := map[store.ThreadKey]bool{}
	var owned []store.OwnedThread
	for i, c := range claims {
		process := ""
		if h, ok := parseHead(replies[i].Val()); ok {
			process = h.Process
		} else if replies[i].Val() != "" {
			continue // damaged; it is left as it is
		}
		if process == c.process {
			s.hints.trust(c)
		} else if s.hints.doubt(c, replies[i].Val(), now) || c.score < old {
			s.scripts.release.Eval(ctx, mend, []string{s.keys.owned(c.process)}, c.tag, c.score)
		}
		key, ok := parseTag(c.tag)
		if ok && process != "" && !seen[key] {
			seen[key] = true
			owned = append(owned, store.OwnedThread{Key: key, Process: process})
		}
	}
	return owned, nil
}

// Walk implements [store.Directory]. It looks at the keys themselves, a page of the
// keyspace at a time, so it also finds what no hint names. A whole walk costs as much as
// Redis has keys, which is for maintenance only.
func (s *Store) Walk(ctx context.Context, after string, limit int) (heads []store.Head, next string, err error) {
	at, err := parsePosition(after)
	if err != nil {
		return nil, "", err
	}
	nodes, err := nodesOf(ctx, s.client)
	if err != nil {
		return nil, "", failed("list all threads", err)
	}
	names := namesOf(nodes)
	if at.nodes != names || at.node >= len(nodes) {
		at = position{nodes: names}
	}
	// A thread has about ten keys.
	found, cursor, run, err := scan(ctx, nodes[at.node].client, at.cursor, s.keys.heads(), int64(10*max(limit, 1)))
	switch {
	case err != nil:
		return nil, "", failed("list all threads", err)
	case at.cursor != 0 && at.run != run:
		return nil, position{nodes: names}.String(), nil
	case cursor != 0:
		next = position{at.node, cursor, names, run}.String()
	case at.node+1 < len(nodes):
		next = position{node: at.node + 1, nodes: names}.String()
	}
	heads, err = s.directory.headsOf(ctx, found)
	return heads, next, err
}

// headsOf reads the heads of the threads with these keys; it leaves out what is gone or
// is no thread. A head that cannot be read has only its key, and why.
func (s *directory) headsOf(ctx context.Context, found []string) ([]store.Head, error) {
	pipe := s.client.Pipeline()
	var keys []store.ThreadKey
	var replies []*redis.SliceCmd
	for _, name := range found {
		tag, isHead := s.keys.headTag(name)
		key, ok := parseTag(tag)
		if !isHead || !ok {
			continue
		}
		keys = append(keys, key)
		replies = append(replies, pipe.HMGet(ctx, name, fieldLayout, "h"))
	}
	if len(replies) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("list all threads", err)
	}
	var heads []store.Head
	for i, reply := range replies {
		h, err := decodeHead(keys[i], reply.Val())
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			h = &store.Head{Key: keys[i], Unreadable: err}
		}
		heads = append(heads, *h)
	}
	return heads, nil
}

// Children implements [store.Directory]. It leaves out hints that the heads do not
// confirm.
func (s *Store) Children(ctx context.Context, parent store.ThreadKey, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	var ids []string
	for len(ids) < limit {
		count := int64(limit - len(ids))
		page, err := s.client.ZRangeByLex(ctx, s.keys.children(parent),
			&redis.ZRangeBy{Min: from, Max: "+", Count: count}).
			Result()
		if err != nil {
			return nil, failed("list the children of thread "+parent.String(), err)
		}
		real, err := s.directory.realChildren(ctx, parent, page)
		if err != nil {
			return nil, err
		}
		ids = append(ids, real...)
		if int64(len(page)) < count {
			break
		}
		from = "(" + page[len(page)-1]
	}
	return ids, nil
}

// realChildren returns those of the threads that name the parent.
func (s *directory) realChildren(ctx context.Context, parent store.ThreadKey, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		child := store.ThreadKey{Tenant: parent.Tenant, Thread: id}
		replies[i] = pipe.HGet(ctx, s.keys.thread(tag(child)), fieldParent)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed("list the children of thread "+parent.String(), err)
	}
	var real []string
	for i, id := range ids {
		if replies[i].Val() == parent.Thread {
			real = append(real, id)
		}
	}
	return real, nil
}
