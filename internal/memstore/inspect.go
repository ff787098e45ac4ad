package memstore

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

var _ holdfast.Inspector = (*Store)(nil)

// Inspect implements [holdfast.Inspector].
func (s *Store) Inspect(context.Context) (holdfast.Durability, error) {
	return holdfast.Durability{Level: holdfast.LevelNone}, nil
}
