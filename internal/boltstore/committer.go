package boltstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/holdfast-agents/holdfast/internal/wake"
	bolt "go.etcd.io/bbolt"
)

const (
	// maxBatch bounds how many writes share a transaction, and maxBatchBytes how
	// large they may be together, so that neither the wait nor the memory of one
	// transaction grows without limit.
	maxBatch      = 1024
	maxBatchBytes = 16 << 20
)

var (
	errClosed = errors.New("the store is closed")
	// errAlready: the operation was done before, so there is nothing to write.
	errAlready = errors.New("written already")
)

// operation is a commit, a post or another write on its way into a transaction.
type operation interface {
	// check reads what the operation depends on. It writes nothing, and if it
	// fails the others of its batch are not concerned.
	check(t *txn) error
	// write follows a check that succeeded. If it fails, so does the batch.
	write(t *txn) error
	// bytes is about how much it writes.
	bytes() int
	// tell wakes those who wait for it.
	tell(l *wake.List)
}

// request is an operation and who waits for it.
type request struct {
	op   operation
	done chan error // holds one
}

// submit hands the operation to the committer and waits. Until the committer
// takes it, it can be cancelled without a trace; that the channel is unbuffered
// makes the difference exact. Then it is written, whoever still waits.
func (s *Store) submit(ctx context.Context, op operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{op: op, done: make(chan error, 1)}
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return errClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stopped waiting for a write under way, its result is unknown: %w", ctx.Err())
	}
}

// committer is the one goroutine that writes. Whatever has come while a
// transaction was being synced is the next one: nobody waits for a timer, and
// the more writers there are, the more share a sync. Close ends it.
func (s *Store) committer() {
	defer close(s.stopped)
	failed := false
	for {
		select {
		case r := <-s.requests:
			batch := s.gather(r)
			results, err := s.writeBatch(batch, failed)
			failed = err != nil
			s.answer(batch, results, err)
		case <-s.closing:
			return
		}
	}
}

// gather takes everything that waits now. Those who were just answered get a
// chance to be among them: without it, two halves of the writers would take
// turns and each sync would serve only one.
func (s *Store) gather(first *request) []*request {
	batch := []*request{first}
	size := first.op.bytes()
	yielded := false
	for len(batch) < maxBatch && size < maxBatchBytes {
		select {
		case r := <-s.requests:
			batch = append(batch, r)
			size += r.op.bytes()
			continue
		default:
		}
		if yielded {
			break
		}
		yielded = true
		runtime.Gosched()
	}
	return batch
}

// writeBatch writes all operations that pass their check in one transaction. It
// returns their results, or the error that kept all of them from being written.
func (s *Store) writeBatch(batch []*request, afterFailure bool) ([]error, error) {
	if afterFailure {
		if err := s.settle(); err != nil {
			return nil, err
		}
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return nil, err
	}
	// After a commit this does nothing.
	defer func() { _ = tx.Rollback() }()
	t := newTxn(tx, s.codec)
	results := make([]error, len(batch))
	writes := false
	for i, r := range batch {
		if results[i] = r.op.check(t); results[i] != nil {
			continue
		}
		writes = true
		if err := r.op.write(t); err != nil {
			return nil, err
		}
	}
	if !writes {
		return results, nil
	}
	return results, tx.Commit()
}

// settle makes durable what can be seen. A transaction that failed may be
// visible without being on disk: if only the sync of bbolt's last page failed, the
// next transaction sees its writes. Nothing may be acknowledged on that ground,
// and no page that only the state on disk needs may be used again. An empty
// transaction uses no page, so it harms nothing if it fails too.
func (s *Store) settle() error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// answer wakes the watchers and then those who wait for the batch.
func (s *Store) answer(batch []*request, results []error, err error) {
	if err != nil {
		err = s.writeFailed(err)
	}
	for i, r := range batch {
		switch {
		case err != nil:
			r.done <- err
		case results[i] == nil:
			r.op.tell(&s.List)
			r.done <- nil
		case errors.Is(results[i], errAlready):
			r.done <- nil
		default:
			r.done <- results[i]
		}
	}
}

// view runs f in a read transaction. f copies what it returns and calls nobody,
// because pages that are in use by a reader cannot be used again.
func (s *Store) view(ctx context.Context, f func(t *txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.db.View(func(tx *bolt.Tx) error { return f(newTxn(tx, s.codec)) })
}
