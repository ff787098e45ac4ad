package main

// A store of one's own: here, one that counts what another one does.

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast/store"
)

// countingStore counts commits by their result. Everything else is the wrapped store's.
type countingStore struct {
	store.Store
	commits *prometheus.CounterVec
}

func newCountingStore(inner store.Store, registry prometheus.Registerer) *countingStore {
	commits := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shop_commits_total", Help: "Commits by result."},
		[]string{"result"})
	registry.MustRegister(commits)
	return &countingStore{Store: inner, commits: commits}
}

// Commit implements [store.Store].
func (s *countingStore) Commit(ctx context.Context, c *store.Commit) error {
	err := s.Store.Commit(ctx, c)
	switch {
	case err == nil:
		s.commits.WithLabelValues("ok").Inc()
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrConflict):
		s.commits.WithLabelValues("refused").Inc()
	default:
		s.commits.WithLabelValues("failed").Inc()
	}
	return err
}

// Durability passes on what the wrapped store says; embedding its interface hides it.
func (s *countingStore) Durability(ctx context.Context) (store.Durability, error) {
	if d, ok := s.Store.(store.Durable); ok {
		return d.Durability(ctx)
	}
	return store.Durability{Level: store.LevelNone}, nil
}
