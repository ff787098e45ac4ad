package memstore

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

var _ store.Roster = (*Store)(nil)

// Describe implements [store.Roster].
func (s *Store) Describe(ctx context.Context, process string, about []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(about) > store.MaxDescription {
		return fmt.Errorf("a description of %d bytes: %w", len(about), store.ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.about[process] = about
	return nil
}

// Described implements [store.Roster].
func (s *Store) Described(ctx context.Context) (map[string][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	said := map[string][]byte{}
	for process := range s.readers() {
		said[process] = s.about[process]
	}
	return said, nil
}
