package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The durability of a commit, as Redis is set up at the moment. Each finding is a note for the
// operator that says what is at risk and how to change it.

var (
	_ store.Durable       = (*Store)(nil)
	_ store.CommitChecker = (*Store)(nil)
)

// Durability implements [store.Durable]. Settings that Redis does not show to this user become
// a note. In a cluster, the weakest master decides.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	const what = "inspect the store"
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		d, err := connection.Inspect(ctx, s.client, s.replicas.need)
		if err != nil {
			return store.Durability{}, failed(what, err)
		}
		return s.replicas.raise(d), nil
	}
	var mu sync.Mutex
	nodes := map[string]store.Durability{}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		d, err := connection.Inspect(ctx, c, s.replicas.need)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		nodes[c.Options().Addr] = d
		return nil
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("the cluster has no masters")
	}
	if err != nil {
		return store.Durability{}, failed(what, err)
	}
	return s.replicas.raise(connection.Weakest(nodes)), nil
}

// raise returns what holds if replicas have each commit.
func (r *replicas) raise(d store.Durability) store.Durability {
	if r.need > 0 {
		d.Level = store.LevelFailover
	}
	return d
}

// CanCommit implements [store.CommitChecker].
func (s *Store) CanCommit(ctx context.Context) error {
	const what = "look whether Redis can be written"
	nodes, err := nodesOf(ctx, s.client)
	if err != nil {
		return failed(what, err)
	}
	for _, n := range nodes {
		if err := connection.CanCommit(ctx, n.client, s.replicas.need); err != nil {
			if errors.Is(err, store.ErrRefused) {
				return err
			}
			return failed(what, err)
		}
	}
	return nil
}
