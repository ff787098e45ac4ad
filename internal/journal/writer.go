package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Config is what a writer needs of its run and of the engine. Every member must
// be set, except where it says otherwise.
type Config struct {
	// process owns the thread.
	Process string
	Now     func() time.Time
	NewID   func(prefix string) string
	// try makes one try to commit.
	Commit func(context.Context, *holdfast.Commit) error
	// shown is called with what the store has acknowledged, before anybody
	// waiting is told.
	Shown func([]holdfast.Record)
	// back is called when the store answers again, with how long it had not.
	Back func(outage time.Duration)
	// giveUp is how long the writer tries to reach the store, and limit how many
	// bytes of deltas may wait meanwhile.
	GiveUp time.Duration
	Limit  int
	// window is how long deltas may wait for more; 0: not at all.
	Window time.Duration
	// stopAtOnce gives up at the first try that fails.
	StopAtOnce bool
}

// Writer is the one way from a run to its thread's log. It is a group commit:
// at most one commit is in flight, and whatever arrives meanwhile is the next
// one; only what nobody waits for may wait a little for more (see Urgency).
// Deltas of one message that wait together become one record. Nothing is shown
// before the store has it.
//
// The run's goroutine is the only one that calls emit, step and delta; a
// goroutine of the writer commits. The run owns the writer and waits for it.
type Writer struct {
	Config
	key   holdfast.ThreadKey
	user  string
	Fence holdfast.Fence
	// ctx is of all commits, because one with a timeout for each costs more than
	// its commit has to; deadline cancels it, and the writer with it.
	ctx      context.Context
	stop     context.CancelFunc
	deadline *time.Timer

	bytes atomic.Int64 // what was written since written was last asked

	mu        sync.Mutex
	seq       agui.Sequencer
	next      *group // what will be committed next
	last      uint64 // number of the last record emitted
	committed holdfast.Position
	acked     time.Time     // when the store last acknowledged a commit
	err       error         // why nothing can be written any more
	unhealthy chan struct{} // closed when commits work again; nil while they do
	since     time.Time     // since when they do not; zero while they do
	outage    time.Duration // how long they had not, until the commit just made
	soon      *time.Timer   // wakes for what may wait; nil when nothing does
	within    time.Duration // how long soon takes
	due       bool          // something is to be committed now
	running   bool          // the goroutine lives
	ended     bool          // and never will again
	idle      chan struct{} // closed then
}

// New makes the writer of a run whose first commit has left the head.
func New(cfg Config, head *holdfast.Head, seq agui.Sequencer) *Writer {
	w := &Writer{
		Config: cfg, key: head.Key, user: head.User, Fence: head.Fence,
		seq: seq, last: head.Next - 1, committed: head.Position(), acked: head.UpdatedAt, idle: make(chan struct{}),
	}
	w.next = w.newGroup()
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.deadline = time.AfterFunc(w.GiveUp, w.stop)
	w.deadline.Stop()
	return w
}

// Delta appends to an open item. It waits while too much is waiting to be
// committed.
func (w *Writer) Delta(ctx context.Context, kind agui.Type, id, text string) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	if err := w.seq.Delta(kind, id); err != nil {
		w.mu.Unlock()
		return err
	}
	b := w.next
	if n := len(b.items); n > 0 && b.items[n-1].kind == kind && b.items[n-1].id == id {
		b.items[n-1].text = append(b.items[n-1].text, text...)
	} else {
		b.items = append(b.items, item{kind: kind, id: id, text: []byte(text)})
		w.last++
	}
	b.bytes += len(text)
	full := b.bytes > w.Limit
	if full {
		w.wake()
	} else {
		w.wakeWithin(w.Window)
	}
	w.mu.Unlock()
	if full {
		return wait(ctx, b)
	}
	return nil
}

// Emit appends events, and whatever must come before them: open items are
// closed before the run's end.
func (w *Writer) Emit(events ...agui.Event) error { return w.Step(events, nil) }

// Step appends events and, in the same commit, whatever f adds. The function
// gets the position of the last record emitted.
func (w *Writer) Step(events []agui.Event, f func(c *holdfast.Commit, last holdfast.Cursor)) error {
	return w.Add(events, AtOnce, f)
}

// Urgency is how soon what was added is committed, if nothing else has it
// committed before.
type Urgency int

const (
	AtOnce Urgency = iota
	// Soon is for what nobody waits for: results of parallel pure tools, the
	// checkpoint after them, and the beginning of the next answer, if it comes at
	// once, are then one commit.
	Soon
	// WithNext waits for whatever comes next.
	WithNext
)

// company is how long soon is.
const company = 5 * time.Millisecond

// Add is Step with a choice of urgency.
func (w *Writer) Add(events []agui.Event, u Urgency, f func(c *holdfast.Commit, last holdfast.Cursor)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	for _, ev := range events {
		before, err := w.seq.Next(ev)
		if err != nil {
			return fmt.Errorf("emit %s: %w", ev.EventType(), err)
		}
		for _, b := range before {
			w.append(b)
		}
		w.append(ev)
	}
	if f != nil {
		f(&w.next.commit, holdfast.Cursor{Number: w.last, Tag: w.Fence.Tag()})
	}
	switch u {
	case AtOnce:
		w.wake()
	case Soon:
		w.wakeWithin(company)
	}
	return nil
}

// CloseOpen ends everything that is open.
func (w *Writer) CloseOpen() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	for _, ev := range w.seq.Close() {
		w.append(ev)
	}
	w.wake()
	return nil
}

// Flush waits until everything given to the writer is durable.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	b := w.next
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	// The next group follows the one in flight, so waiting for it waits for both;
	// it may be empty.
	w.wake()
	w.mu.Unlock()
	return wait(ctx, b)
}

// Close commits what is left, with process as the owner from then on ("" when
// the run has ended), and stops. It returns once nothing runs any more.
func (w *Writer) Close(ctx context.Context, process string) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	b := w.next
	b.closing = true
	w.Process = process
	w.wake()
	w.mu.Unlock()
	<-w.idle
	return wait(ctx, b)
}

// Finish is step for the run's last event: in the same commit the thread has no
// owner any more. A commit of its own for that would have no record, so it would
// wake nobody who waits for the thread to be free. It returns once nothing runs
// any more.
func (w *Writer) Finish(ctx context.Context, ev agui.Event, f func(c *holdfast.Commit, last holdfast.Cursor)) error {
	var b *group
	err := w.Step([]agui.Event{ev}, func(c *holdfast.Commit, last holdfast.Cursor) {
		f(c, last)
		b = w.next
		b.closing, w.Process = true, ""
	})
	if err != nil {
		return err
	}
	<-w.idle
	return wait(ctx, b)
}

// Abandon stops without committing what is left.
func (w *Writer) Abandon(cause error) {
	w.mu.Lock()
	w.fail(cause)
	w.mu.Unlock()
	<-w.idle
}

// Ready waits while the store cannot be reached, so that no model call and no
// tool starts then.
func (w *Writer) Ready(ctx context.Context) error {
	w.mu.Lock()
	sick, err := w.unhealthy, w.err
	w.mu.Unlock()
	if err != nil || sick == nil {
		return err
	}
	select {
	case <-sick:
		return w.Ready(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Written is how many bytes were written since it was last asked, of what may stay.
func (w *Writer) Written() int64 { return w.bytes.Swap(0) }

// Acknowledged is when the last commit was made that the store has acknowledged:
// until then at least, the thread was ours.
func (w *Writer) Acknowledged() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// fail ends the writer; the caller holds the lock.
func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.stopTimer()
	if w.unhealthy != nil { // there is nothing to wait for any more
		close(w.unhealthy)
		w.unhealthy = nil
	}
	if w.next != nil {
		w.next.err = w.err
		close(w.next.done)
		w.next = nil
	}
	if !w.running {
		w.end()
	}
}

// end is called once the writer has failed or is closed and nothing runs; the
// caller holds the lock.
func (w *Writer) end() {
	if !w.ended {
		w.ended = true
		w.stop()
		close(w.idle)
	}
}

var ErrClosed = errors.New("the run's writer is closed")
