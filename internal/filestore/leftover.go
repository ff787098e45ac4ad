package filestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/storekit"
)

// The leftovers of unfinished commits that are written in steps; see steps.go.

// discard removes what commits that were not finished have written.
type discard struct{ numbers []uint64 }

func (o *discard) bytes() int { return 128 * len(o.numbers) }

func (o *discard) tell(*storekit.Waiters) {}

func (o *discard) check(*txn) error { return nil }

func (o *discard) write(t *txn) error {
	for _, number := range o.numbers {
		prefix := threadPrefix(number)
		if err := errors.Join(t.removeRange(prefix, end(prefix)), t.remove(stepsKey(number))); err != nil {
			return err
		}
	}
	return nil
}

// unfinished returns the numbers below which a process that died has left something.
func (v view) unfinished() (numbers []uint64, err error) {
	prefix := metaKey(metaSteps)
	err = v.ascend(prefix, prefix, func(key, _ []byte) (bool, error) {
		if len(key) != len(prefix)+8 {
			return false, fmt.Errorf("a mark of an unfinished commit: %w", folder.ErrDamaged)
		}
		numbers = append(numbers, binary.BigEndian.Uint64(key[len(prefix):]))
		return true, nil
	})
	return numbers, err
}

// discardUnfinished removes what a process that died has left.
func discardUnfinished(s *committer, numbers []uint64) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := s.submit(ctx, &discard{numbers: numbers}); err != nil && !errors.Is(err, folder.ErrClosed) {
		s.log.Warn("what unfinished commits have left could not be removed; it is tried again when the store is opened",
			"store", s.dir, "error", folder.FirstLine(err))
	}
}
