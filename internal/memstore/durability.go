package memstore

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

var _ holdfast.Durable = (*Store)(nil)

// Durability implements [holdfast.Durable].
func (s *Store) Durability(context.Context) (holdfast.Durability, error) {
	return holdfast.Durability{Level: holdfast.LevelNone}, nil
}
