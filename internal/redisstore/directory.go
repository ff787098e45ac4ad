package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/redis/go-redis/v9"
)

// hintAge is how old a hint that no head bears out must be before it is
// removed: its commit may still be on the way.
const hintAge = 10 * time.Minute

// hints remembers what this process has announced, so that it does so once.
// Forgetting is harmless: a hint written twice is the same hint.
type hints struct {
	mu        sync.Mutex
	announced map[string]hint // by tag
	last      int64           // the last score of an owned thread
}

// hint is what the directory knows of a thread.
type hint struct {
	owner   holdfast.Principal
	minute  int64
	process string
	score   int64 // when the process said that it has the thread, in µs
}

// maxHints bounds what a process remembers.
const maxHints = 100_000

func (h *hints) get(tag string) (hint, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is, known := h.announced[tag]
	return is, known
}

func (h *hints) put(tag string, is hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.announced == nil || len(h.announced) >= maxHints {
		h.announced = map[string]hint{}
	}
	h.announced[tag] = is
}

func (h *hints) drop(tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.announced, tag)
}

// score is larger each time, so that a hint that was written again can be told
// from the one before.
func (h *hints) score(now time.Time) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = max(h.last+1, now.UnixMicro())
	return h.last
}

// minuteOf counts minutes from 1970. A busy thread moves in the list once a
// minute, not in every commit; the order within a minute comes from the heads.
// What matters is that a later time never has a smaller one.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// announceAndCommit writes the hints that are new and runs the commit script. A
// hint is there before its commit, so whatever is committed can be found. A
// thread that gets a new fence is acquired, and announced again in any case.
func (s *Store) announceAndCommit(ctx context.Context, tag string, c *holdfast.Commit, do call) (int, error) {
	has, known := s.hints.get(tag)
	want := hint{
		owner:   holdfast.Principal{Tenant: c.Key.Tenant, User: c.User},
		minute:  minuteOf(c.UpdatedAt),
		process: c.Process, score: has.score,
	}
	moves := !known || has.owner != want.owner || has.minute != want.minute
	acquires := want.process != "" && (has.process != want.process || c.Fence != c.Expect.Fence)
	if acquires {
		want.score = s.hints.score(s.now())
	}
	var hints hintWriter
	if moves || acquires || c.Parent != "" {
		hints = func(pipe redis.Pipeliner) (cmds []redis.Cmder) {
			if c.Parent != "" {
				parent := holdfast.ThreadKey{Tenant: c.Key.Tenant, Thread: c.Parent}
				cmds = append(cmds, pipe.ZAdd(ctx, s.keys.children(parent), redis.Z{Member: c.Key.Thread}))
			}
			if moves {
				cmds = append(cmds, pipe.ZAdd(ctx, s.keys.active(want.owner), redis.Z{Score: float64(want.minute), Member: c.Key.Thread}))
			}
			if acquires {
				cmds = append(cmds, pipe.ZAddNX(ctx, s.keys.processes(), redis.Z{Score: float64(want.score), Member: want.process}),
					pipe.ZAdd(ctx, s.keys.owned(want.process), redis.Z{Score: float64(want.score), Member: tag}))
			}
			return cmds
		}
	}
	n, err := s.execWithHints(ctx, hints, do)
	if err != nil || n != codeOK {
		// Whatever this commit says of the thread, the head says otherwise or may.
		s.hints.drop(tag)
		return n, err
	}
	s.hints.put(tag, want)
	if want.process == "" && has.process != "" {
		// The hint that stays behind if this fails is found wrong by its reader.
		_, _ = s.runScript(ctx, s.scripts.release, []string{s.keys.owned(has.process)}, tag, has.score)
	}
	return n, nil
}

// execWithHints writes the hints and then the commit. One server keeps the
// order within a pipeline; the nodes of a cluster do not.
func (s *Store) execWithHints(ctx context.Context, hints hintWriter, do call) (int, error) {
	if s.cluster && hints != nil {
		pipe := s.client.Pipeline()
		hints(pipe)
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, err
		}
		hints = nil
	}
	return s.committer.submit(ctx, &request{hints: hints, do: do})
}

// Threads implements [holdfast.Directory]. It reads the owner's threads by the
// minutes of their hints, newest first, until those that are surely in front are
// enough, and orders them by their heads.
func (s *Store) Threads(ctx context.Context, owner holdfast.Principal, before time.Time, limit int) ([]holdfast.Head, error) {
	page := &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(max(limit, 0) + 16)}
	if !before.IsZero() {
		page.Max = strconv.FormatInt(minuteOf(before), 10)
	}
	var heads []holdfast.Head
	for limit > 0 {
		entries, err := s.client.ZRevRangeByScoreWithScores(ctx, s.keys.active(owner), page).Result()
		if err != nil {
			return nil, failed("list threads", err)
		}
		found, err := s.confirm(ctx, owner, entries)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			if before.IsZero() || h.UpdatedAt.Before(before) {
				heads = append(heads, h)
			}
		}
		if int64(len(entries)) < page.Count {
			break
		}
		// What is in the last minute, or moved behind it, may have others before it.
		last := int64(entries[len(entries)-1].Score)
		sure := slices.DeleteFunc(slices.Clone(heads), func(h holdfast.Head) bool { return minuteOf(h.UpdatedAt) <= last })
		if len(sure) >= limit {
			heads = sure
			break
		}
		page.Offset += page.Count
	}
	slices.SortFunc(heads, func(a, b holdfast.Head) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	// A thread that moved while it was being read is there twice.
	heads = slices.CompactFunc(heads, func(a, b holdfast.Head) bool { return a.Key == b.Key })
	return heads[:min(len(heads), max(limit, 0))], nil
}

// confirm reads the heads of hinted threads, returns those that are the
// owner's, and mends old hints that are wrong.
func (s *Store) confirm(ctx context.Context, owner holdfast.Principal, entries []redis.Z) ([]holdfast.Head, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.SliceCmd, len(entries))
	keyOf := func(i int) holdfast.ThreadKey {
		thread, _ := entries[i].Member.(string)
		return holdfast.ThreadKey{Tenant: owner.Tenant, Thread: thread}
	}
	for i := range entries {
		replies[i] = pipe.HMGet(ctx, s.keys.thread(tag(keyOf(i))), "v", "h")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("list threads", err)
	}
	var heads []holdfast.Head
	mend := s.client.Pipeline()
	for i, reply := range replies {
		key := keyOf(i)
		old := int64(entries[i].Score) < minuteOf(s.now().Add(-hintAge))
		h, err := decodeHead(key, reply.Val())
		switch {
		case errors.Is(err, holdfast.ErrNotFound) || err == nil && h.User != owner.User:
			if old {
				mend.ZRem(ctx, s.keys.active(owner), key.Thread)
			}
			continue
		case err != nil:
			return nil, err
		}
		if is := minuteOf(h.UpdatedAt); is != int64(entries[i].Score) && (old || is > int64(entries[i].Score)) {
			mend.ZAdd(ctx, s.keys.active(owner), redis.Z{Score: float64(is), Member: key.Thread})
		}
		heads = append(heads, *h)
	}
	// A hint that stays wrong is mended the next time.
	_, _ = mend.Exec(ctx)
	return heads, nil
}

// processAge is how long after the end of its lease a process that has left
// nothing behind is forgotten.
const processAge = time.Hour

// Owned implements [holdfast.Directory]. The hints name the threads to look at;
// their heads say who owns them.
func (s *Store) Owned(ctx context.Context) ([]holdfast.OwnedThread, error) {
	processes, err := s.client.ZRangeWithScores(ctx, s.keys.processes(), 0, -1).Result()
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
		if len(sets[i].Val()) == 0 && int64(processes[i].Score) < s.now().Add(-processAge).UnixMicro() {
			mend.ZRem(ctx, s.keys.processes(), processes[i].Member)
		}
		for _, z := range sets[i].Val() {
			found = append(found, claim{process: member(processes[i]), tag: member(z), score: int64(z.Score)})
		}
	}
	owned, err := s.confirmOwned(ctx, found, mend)
	if err == nil {
		// A hint that stays wrong is mended the next time.
		_, _ = mend.Exec(ctx)
	}
	return owned, err
}

func member(z redis.Z) string {
	m, _ := z.Member.(string)
	return m
}

// claim is a hint that a process has a thread.
type claim struct {
	process, tag string
	score        int64
}

// confirmOwned asks the heads, and adds the removal of old hints that are wrong
// to mend.
func (s *Store) confirmOwned(ctx context.Context, claims []claim, mend redis.Pipeliner) ([]holdfast.OwnedThread, error) {
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
	old := s.now().Add(-hintAge).UnixMicro()
	seen := map[holdfast.ThreadKey]bool{}
	var owned []holdfast.OwnedThread
	for i, c := range claims {
		process := ""
		if h, ok := parseHead(replies[i].Val()); ok {
			process = h.Process
		}
		if process != c.process && c.score < old {
			s.scripts.release.Eval(ctx, mend, []string{s.keys.owned(c.process)}, c.tag, c.score)
		}
		key, ok := parseTag(c.tag)
		if ok && process != "" && !seen[key] {
			seen[key] = true
			owned = append(owned, holdfast.OwnedThread{Key: key, Process: process})
		}
	}
	return owned, nil
}
