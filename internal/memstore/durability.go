package memstore

import (
	"context"

	"github.com/holdfast-agents/holdfast/store"
)

var _ store.Durable = (*Store)(nil)

// Durability implements [store.Durable].
func (s *Store) Durability(context.Context) (store.Durability, error) {
	return store.Durability{Level: store.LevelNone}, nil
}
