package filestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// The one goroutine that writes. It gathers what waits into a batch, has the engine write and
// sync it, and answers; and it says no at once while that is not possible. A refused commit
// may still be written: commits are tried again with the same id.

const (
	// maxBatch bounds how many operations share a sync, and maxBatchBytes how large
	// they may be together before no other joins them, so that neither the wait nor the
	// memory of one batch grows without limit: large commits are written one by one.
	maxBatch      = 1024
	maxBatchBytes = 1 << 20
)

// committer is that goroutine, and what it shares with those who read: the engines.
type committer struct {
	*site
	codec    *frame.Codec
	place    *place
	waiters  *storekit.Waiters
	readOnly bool

	// The goroutine's own.
	writing *engine // nil while there is none
	late    *group  // that waits for room
	hot     hot
	numbers numbers

	engine  atomic.Pointer[engine] // that is read
	refused atomic.Pointer[error]  // why commits are refused; nil when they are not

	requests chan *request // unbuffered: see submit
	opened   chan *engine  // from the keeper
	keeping  sync.WaitGroup
	left     atomic.Int64 // engines that could not be closed
	closing  chan struct{}
	stopped  chan struct{} // closed when the goroutine has ended
}

func newCommitter(at *site, codec *frame.Codec, place *place, waiters *storekit.Waiters, readOnly bool) *committer {
	return &committer{
		site:     at,
		codec:    codec,
		place:    place,
		waiters:  waiters,
		readOnly: readOnly,
		requests: make(chan *request),
		opened:   make(chan *engine),
		closing:  make(chan struct{}),
		stopped:  make(chan struct{}),
	}
}

// stop ends it, and closes the engine.
func (c *committer) stop() error {
	close(c.closing)
	<-c.stopped
	c.keeping.Wait()
	return c.engine.Load().close()
}

// numbers are the last ones that were given away.
type numbers struct {
	thread  uint64 // to a thread
	account uint64 // to an account of the ledger
}

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

// txn is a batch that is being put together. Its earlier writes can be read from it.
type txn struct {
	view
	batch   *pebble.Batch
	hot     *hot
	numbers numbers
	before  numbers
}

func newTxn(b *pebble.Batch, c *committer, n numbers) *txn {
	return &txn{
		view:    view{Reader: b, codec: c.codec, damage: &c.damage},
		batch:   b,
		hot:     &c.hot,
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

// removeRange removes the keys from one on, up to but not including the other. After each batch with a
// range, the next read puts all ranges since the last table in order again, thousands of them perhaps: what
// happens often, and is about few keys, removes them one by one.
func (t *txn) removeRange(from, to []byte) error { return t.batch.DeleteRange(from, to, nil) }

const (
	// fewKeys is how many keys are removed one by one, and fewBytes how much there may be under
	// them if they have to be read for that.
	fewKeys  = 64
	fewBytes = 64 << 10
)

// removeAll removes everything with the prefix.
func (t *txn) removeAll(prefix []byte) error {
	var keys [][]byte
	size := 0
	err := folder.Guard(func() error {
		return t.ascend(prefix, prefix, func(key, value []byte) (bool, error) {
			keys, size = append(keys, bytes.Clone(key)), size+len(value)
			return len(keys) <= fewKeys && size <= fewBytes, nil
		})
	})
	if err != nil || len(keys) > fewKeys || size > fewBytes { // what is damaged can be removed unread
		return t.removeRange(prefix, end(prefix))
	}
	for _, key := range keys {
		err = errors.Join(err, t.remove(key))
	}
	return err
}

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

// submit hands the operation to the committer and waits. Until the committer takes it, it can
// be cancelled without a trace; that the channel is unbuffered makes the difference exact.
// Then it is written, even if nobody waits any more.
func (c *committer) submit(ctx context.Context, op operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{op: op, done: make(chan error, 1)}
	select {
	case c.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closing:
		return folder.ErrClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stopped waiting for a write under way, its result is unknown: %w", ctx.Err())
	}
}

// run is the one goroutine that writes. The commits that come while a batch is being synced
// form the next one: nobody waits for a timer, and the more writers there are, the more share
// a sync. stop ends it.
func (c *committer) run() {
	defer close(c.stopped)
	for {
		var applied <-chan error
		if c.late != nil {
			applied = c.late.applied
		}
		var failed <-chan struct{}
		if c.writing != nil {
			failed = c.writing.disk.Failed()
		}
		select {
		case r := <-c.requests:
			if err := c.place.why(c.refused.Load()); err != nil {
				r.done <- err
				continue
			}
			c.commit(gather(c.requests, r))
		case err := <-applied:
			c.finish(c.late, err)
		case <-failed:
			c.fence()
		case e := <-c.opened:
			c.takeOver(e)
		case <-c.closing:
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
func (c *committer) commit(requests []*request) {
	g := c.assemble(requests)
	if g.txn.batch.Empty() {
		g.txn.close()
		g.answer(c.waiters, nil)
		return
	}
	e := c.writing
	go func() { g.applied <- e.apply(g.txn.batch) }()
	full, _ := e.disk.Full()
	select {
	case err := <-g.applied:
		c.finish(g, err)
		return
	case <-e.disk.Failed():
	case <-full:
		if c.finishSoon(g) {
			return
		}
	}
	if e.disk.Failure() != nil {
		c.fence()
	} else {
		c.late = g
		_, why := e.disk.Full()
		c.refuseForRoom(why)
	}
	g.answer(c.waiters, *c.refused.Load())
}

// patience is for a group that is written while something else waits for room.
const patience = 250 * time.Millisecond

// finishSoon reports whether the group was written although there is no room for
// something: the log may have some left that nothing else can use.
func (c *committer) finishSoon(g *group) bool {
	select {
	case err := <-g.applied:
		c.finish(g, err)
		return true
	case <-c.writing.disk.Failed():
	case <-time.After(patience):
	}
	return false
}

// assemble puts a batch together. An operation that reads what is damaged fails alone: the
// batch starts again without it.
func (c *committer) assemble(requests []*request) *group {
	results := make([]error, len(requests))
	for {
		g := &group{
			requests: requests,
			results:  slices.Clone(results),
			txn:      newTxn(c.writing.newBatch(), c, c.numbers),
			applied:  make(chan error, 1),
		}
		failed, err := g.put()
		if err == nil {
			return g
		}
		results[failed] = err
		g.txn.close()
		c.hot.forgetAll()
	}
}

// put puts the operations that pass their check into the batch. It returns which one
// could not be put there.
func (g *group) put() (failed int, err error) {
	for i, r := range g.requests {
		if g.results[i] != nil {
			continue
		}
		if g.results[i] = folder.Guard(func() error { return r.op.check(g.txn) }); g.results[i] != nil {
			continue
		}
		if err := folder.Guard(func() error { return r.op.write(g.txn) }); err != nil {
			return i, err
		}
	}
	return 0, g.txn.finish()
}

// finish is for a group that was applied, or could not be.
func (c *committer) finish(g *group, err error) {
	if err != nil && c.writing.disk.Failure() != nil {
		c.fence()
		g.answer(c.waiters, *c.refused.Load())
		return
	}
	if g == c.late {
		c.late = nil
		c.refused.Store(nil)
		c.log.Info("the store has room again", "store", c.dir)
	}
	if err != nil {
		c.hot.forgetAll()
		err = fmt.Errorf("write to the store %s: %w", c.dir, err)
	} else {
		c.numbers = g.txn.numbers
	}
	g.txn.close()
	g.answer(c.waiters, err)
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

// fence ends writing with an engine that has failed. Its last batch may have been written or
// not, as its callers are told.
func (c *committer) fence() {
	d := c.writing.disk
	cause := d.Failure()
	c.writing, c.late = nil, nil
	c.hot.forgetAll()
	c.refused.Store(refusal(folder.Reopens(c.dir, cause)))
	c.log.Error("the store could not write, and is opened again; commits are refused until then",
		"store", c.dir, "error", folder.FirstLine(cause))
	c.keep(func() *engine { return c.reopen(d, cause) })
}

// takeOver goes on with an engine that the keeper has opened.
func (c *committer) takeOver(e *engine) {
	if err := c.use(e); err != nil {
		c.refused.Store(refusal(fmt.Errorf("write to the store %s: %w", c.dir, err)))
		c.log.Error("the store was opened again, but cannot be written", "store", c.dir, "error", folder.FirstLine(err))
		_ = e.close() // the error before it says more
	}
}

// view runs f on what is durable. f copies what it returns and calls nobody.
func (c *committer) view(ctx context.Context, f func(v view) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		e := c.engine.Load()
		err := e.read(func(r pebble.Reader) error { return f(view{Reader: r, codec: c.codec, damage: &c.damage}) })
		if err == folder.ErrClosed && c.engine.Load() != e {
			continue // another one has taken its place
		}
		return err
	}
}
