package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The history: the newest checkpoints are in the thread's hash, the others in their own and in
// a list.

// checkpoints returns a page of the history, newest first: of those in the thread's hash, and
// of those that are listed, without the oldest that are too much.
func (s *Store) checkpoints(ctx context.Context, key store.ThreadKey, before string, limit int) ([]store.Value, error) {
	tag := tag(key)
	page := &redis.ZRangeBy{Min: "-", Max: "+", Count: int64(limit)}
	if before != "" {
		page.Max = "(" + before
	}
	var head *redis.SliceCmd
	var listed *redis.StringSliceCmd
	var older *redis.IntCmd // how many are listed before it
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		head = pipe.HMGet(ctx, s.keys.thread(tag), append([]string{"h"}, recentFields...)...)
		listed = pipe.ZRevRangeByLex(ctx, s.keys.history(tag), page)
		older = pipe.ZLexCount(ctx, s.keys.history(tag), page.Min, page.Max)
	})
	if err != nil {
		return nil, failed("read the history of thread "+key.String(), err)
	}
	if head.Val()[0] == nil {
		return nil, notFound(key)
	}
	newest, err := parseRecent(head.Val()[1:])
	if err != nil {
		return nil, fmt.Errorf("thread %s, checkpoints: %w", key, err)
	}
	ids := listed.Val()
	ids = ids[:min(len(ids), max(int(older.Val())-newest.hidden, 0))]
	for id := range newest.framed {
		if (before == "" || id < before) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
	if limit > 0 {
		ids = ids[:min(len(ids), limit)]
	}
	return s.checkpointsOf(ctx, key, ids, newest)
}

// checkpointsOf returns those of the checkpoints with these ids that are still there.
func (s *Store) checkpointsOf(
	ctx context.Context, key store.ThreadKey, ids []string, newest recent,
) ([]store.Value, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	tag := tag(key)
	var framed *redis.SliceCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		framed = pipe.HMGet(ctx, s.keys.values(tag, store.KindCheckpoint), ids...)
	})
	if err != nil {
		return nil, failed("read checkpoints of thread "+key.String(), err)
	}
	var values []store.Value
	for i, id := range ids {
		text, there := newest.framed[id]
		if !there {
			text, there = framed.Val()[i].(string)
		}
		if !there {
			continue // removed since the history was read
		}
		data, err := s.values.decode(key, "", valueName(store.KindCheckpoint, id), text)
		if err != nil {
			return nil, err
		}
		values = append(values, store.Value{Kind: store.KindCheckpoint, ID: id, Data: data})
	}
	return values, nil
}
