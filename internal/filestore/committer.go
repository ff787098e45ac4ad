package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// The one goroutine that writes. It gathers what waits into a batch, has the engine write
// and sync it, and answers; and it says no at once while that is not possible. What a
// caller was refused may still be written: commits are tried again with the same id.

const (
	// maxBatch bounds how many operations share a sync, and maxBatchBytes how large
	// they may be together before no other joins them, so that neither the wait nor the
	// memory of one batch grows without limit: large commits are written one by one.
	maxBatch      = 1024
	maxBatchBytes = 1 << 20
)

// errAlready: the operation was done before, so there is nothing to write.
var errAlready = errors.New("written already")

// operation is a commit, a post or another write on its way into a batch.
type operation interface {
	// check reads what the operation depends on. It writes nothing, and if it fails
	// the others of its batch are not concerned.
	check(t *txn) error
	// write follows a check that succeeded. If it fails, so does the batch.
	write(t *txn) error
	// bytes is about how much it writes.
	bytes() int
	// tell wakes those who wait for it.
	tell(w *storekit.Waiters)
}

// txn is a batch that is being put together. What was written to it can be read
// from it.
type txn struct {
	view
	batch   *pebble.Batch
	hot     *hot
	numbers numbers
	before  numbers
}

func newTxn(b *pebble.Batch, s *Store, n numbers) *txn {
	return &txn{
		view:    view{Reader: b, codec: s.codec, damage: &s.damage},
		batch:   b,
		hot:     &s.hot,
		numbers: n,
		before:  n,
	}
}

// thread finds a thread; nil if there is none.
func (t *txn) thread(key store.ThreadKey) (*thread, error) {
	if found := t.hot.get(key); found != nil {
		return found, nil
	}
	number, err := t.find(key)
	if err != nil || number == 0 {
		return nil, err
	}
	h, err := t.head(number)
	if err != nil {
		return nil, err
	}
	found := &thread{number: number, head: h}
	t.hot.put(key, found)
	return found, nil
}

func (t *txn) set(key, value []byte) error { return t.batch.Set(key, value, nil) }

func (t *txn) remove(key []byte) error { return t.batch.Delete(key, nil) }

// removeRange removes the keys from one on, up to but not including the other.
func (t *txn) removeRange(from, to []byte) error { return t.batch.DeleteRange(from, to, nil) }

// finish adds the numbers that were given away.
func (t *txn) finish() error {
	var err error
	if t.numbers.thread != t.before.thread {
		err = t.set(metaKey(metaThreads), numbered(0, t.numbers.thread)[1:])
	}
	if t.numbers.account != t.before.account {
		err = errors.Join(err, t.set(metaKey(metaAccounts), numbered(0, t.numbers.account)[1:]))
	}
	return err
}

func (t *txn) close() { _ = t.batch.Close() }

// request is an operation and who waits for it.
type request struct {
	op   operation
	done chan error // holds one
}

// submit hands the operation to the committer and waits. Until the committer takes
// it, it can be cancelled without a trace; that the channel is unbuffered makes the
// difference exact. Then it is written, whoever still waits.
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

// committer is the one goroutine that writes. Whatever has come while a batch was
// being synced is the next one: nobody waits for a timer, and the more writers there
// are, the more share a sync. Close ends it.
func (s *Store) committer() {
	defer close(s.stopped)
	for {
		var applied <-chan error
		if s.late != nil {
			applied = s.late.applied
		}
		var failed <-chan struct{}
		if s.writing != nil {
			failed = s.writing.disk.failed
		}
		select {
		case r := <-s.requests:
			if err := s.place.why(s.refused.Load()); err != nil {
				r.done <- err
				continue
			}
			s.commit(gather(s.requests, r))
		case err := <-applied:
			s.finish(s.late, err)
		case <-failed:
			s.fence()
		case e := <-s.opened:
			s.takeOver(e)
		case <-s.closing:
			return
		}
	}
}

// gather takes everything that waits now. Those who were just answered get a chance
// to be among them: without it, two halves of the writers would take turns and each
// sync would serve only one.
func gather(waiting <-chan *request, first *request) []*request {
	batch := []*request{first}
	size := first.op.bytes()
	yielded := false
	for len(batch) < maxBatch && size < maxBatchBytes {
		select {
		case r := <-waiting:
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

// group is requests that are written together.
type group struct {
	requests []*request
	results  []error // of the checks
	txn      *txn
	applied  chan error // holds one
	answered bool       // nobody waits any more
}

// commit writes all operations that pass their check, and syncs once.
func (s *Store) commit(requests []*request) {
	g := s.assemble(requests)
	if g.txn.batch.Empty() {
		g.txn.close()
		g.answer(&s.waiters, nil)
		return
	}
	e := s.writing
	go func() { g.applied <- e.apply(g.txn.batch) }()
	full, _ := e.disk.isFull()
	select {
	case err := <-g.applied:
		s.finish(g, err)
		return
	case <-e.disk.failed:
	case <-full:
		if s.finishSoon(g) {
			return
		}
	}
	if e.disk.failure() != nil {
		s.fence()
	} else {
		s.late = g
		_, why := e.disk.isFull()
		s.refuseForRoom(why)
	}
	g.answer(&s.waiters, *s.refused.Load())
}

// patience is for a group that is written while something else waits for room.
const patience = 250 * time.Millisecond

// finishSoon reports whether the group was written although there is no room for
// something: the log may have some left that nothing else can use.
func (s *Store) finishSoon(g *group) bool {
	select {
	case err := <-g.applied:
		s.finish(g, err)
		return true
	case <-s.writing.disk.failed:
	case <-time.After(patience):
	}
	return false
}

// assemble puts a batch together. An operation that reads what is damaged fails
// alone: the batch is begun anew without it.
func (s *Store) assemble(requests []*request) *group {
	results := make([]error, len(requests))
	for {
		g := &group{
			requests: requests,
			results:  slices.Clone(results),
			txn:      newTxn(s.writing.newBatch(), s, s.numbers),
			applied:  make(chan error, 1),
		}
		failed, err := g.put()
		if err == nil {
			return g
		}
		results[failed] = err
		g.txn.close()
		s.hot.forgetAll()
	}
}

// put puts the operations that pass their check into the batch. It returns which one
// could not be put there.
func (g *group) put() (failed int, err error) {
	for i, r := range g.requests {
		if g.results[i] != nil {
			continue
		}
		if g.results[i] = guard(func() error { return r.op.check(g.txn) }); g.results[i] != nil {
			continue
		}
		if err := guard(func() error { return r.op.write(g.txn) }); err != nil {
			return i, err
		}
	}
	return 0, g.txn.finish()
}

// finish is for a group that was applied, or could not be.
func (s *Store) finish(g *group, err error) {
	if err != nil && s.writing.disk.failure() != nil {
		s.fence()
		g.answer(&s.waiters, *s.refused.Load())
		return
	}
	if g == s.late {
		s.late = nil
		s.refused.Store(nil)
		s.log.Info("the store has room again", "store", s.dir)
	}
	if err != nil {
		s.hot.forgetAll()
		err = fmt.Errorf("write to the store %s: %w", s.dir, err)
	} else {
		s.numbers = g.txn.numbers
	}
	g.txn.close()
	g.answer(&s.waiters, err)
}

// answer wakes the watchers and then those who wait for the group. After an error
// no result of a check holds: it may have seen what the group was going to write.
func (g *group) answer(waiters *storekit.Waiters, err error) {
	for i, r := range g.requests {
		result := cmp.Or(err, g.results[i])
		if result == nil {
			r.op.tell(waiters)
		}
		if errors.Is(result, errAlready) {
			result = nil
		}
		if !g.answered {
			r.done <- result
		}
	}
	g.answered = true
}

// fence ends writing with an engine that has failed. What it was writing may have
// been written or not, as its callers are told.
func (s *Store) fence() {
	d := s.writing.disk
	cause := d.failure()
	s.writing, s.late = nil, nil
	s.hot.forgetAll()
	s.refused.Store(refusal(reopens(s.dir, cause)))
	s.log.Error("the store could not write, and is opened again; commits are refused until then",
		"store", s.dir, "error", firstLine(cause))
	s.keep(func() *engine { return s.reopen(d, cause) })
}

// takeOver goes on with an engine that the keeper has opened.
func (s *Store) takeOver(e *engine) {
	if err := s.use(e); err != nil {
		s.refused.Store(refusal(fmt.Errorf("write to the store %s: %w", s.dir, err)))
		s.log.Error("the store was opened again, but cannot be written", "store", s.dir, "error", firstLine(err))
		_ = e.close() // the error before it says more
	}
}

// view runs f on what is durable. f copies what it returns and calls nobody.
func (s *Store) view(ctx context.Context, f func(v view) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		e := s.engine.Load()
		err := e.read(func(r pebble.Reader) error { return f(view{Reader: r, codec: s.codec, damage: &s.damage}) })
		if err == errClosed && s.engine.Load() != e {
			continue // another one has taken its place
		}
		return err
	}
}
