// Package journal is the one way from a run to its thread's log. A run gives its Writer events
// and changes; the Writer groups them into commits, at most one of them in flight, and keeps
// trying while the store does not answer. Records that the store has acknowledged go to the
// run's Feed, the newest part of the log in memory, where watchers read it. Nothing is shown
// before it is durable.
package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// The side of the Writer that a run calls: what it adds waits in the next group, and
// group commit turns that into as few commits as the store's speed allows. The goroutine
// that commits is in commit.go, and what a commit is made of in group.go.

// Config is what a Writer needs of its run and of the engine. Every field must be set,
// except where it says otherwise.
type Config struct {
	// Process is the id of the process that owns the thread.
	Process string
	Now     clock.Shared               // the clock for stamps
	NewID   func(prefix string) string // makes ids of commits
	// Asked is when the commit was sent with which the process became the owner.
	Asked clock.Moment
	// Commit tries once to commit.
	Commit func(context.Context, *store.Commit) error
	// Shown gets the records that the store has acknowledged, before a call that waits
	// for them returns. It must not block.
	Shown func([]store.Record)
	// Back is called when the store answers again, with how long it did not.
	Back func(outage time.Duration)
	// GiveUp is how long the Writer tries to reach the store.
	GiveUp time.Duration
	// Limit is how many bytes of deltas may wait to be committed.
	Limit int
	// Window is how long deltas may wait for more; 0 means not at all.
	Window time.Duration
	// Slowness says how long all deltas of an item but its first may wait, besides; nil means
	// not at all.
	Slowness *Slowness
	// Go calls f on a goroutine. It may be left nil.
	Go func(f func())
	// StopAtOnce gives up at the first try that fails. It may be left false.
	StopAtOnce bool
	// Pause is called before each group is taken. A simulation decides there when
	// that happens, and so what is in the group; if it is nil, the scheduler of Go does.
	Pause func()
}

// Writer is the one way from a run to its thread's log. It is a group commit: at most
// one commit is in flight, and whatever arrives meanwhile becomes the next one. Only what
// nobody waits for may wait a little for more (see Urgency). Successive deltas of one
// item that wait together become one record. Nothing is shown before the store has it.
//
// The run's goroutine adds to a Writer, and its tools add notices; a goroutine of the
// Writer commits. The run owns the Writer: Close, Finish or Abandon ends it and waits for
// its goroutine.
type Writer struct {
	Config
	key  store.ThreadKey
	user string
	// Fence is the one under which the run owns the thread. It does not change.
	Fence store.Fence
	// ctx is shared by all commits, because a context with a timeout for each would cost
	// more than the commit itself; deadline cancels it, and with it the Writer.
	ctx      context.Context
	stop     context.CancelFunc
	deadline *time.Timer

	bytes    atomic.Int64 // what was written since the last call of Written
	predicts atomic.Bool  // see Predicts

	mu        sync.Mutex
	seq       agui.Sequencer
	next      *group // what will be committed next
	last      uint64 // number of the last record emitted
	committed store.Position
	acked     clock.Moment  // when the last acknowledged commit was first sent
	err       error         // why nothing can be written any more
	unhealthy chan struct{} // closed when commits work again; nil while they do
	since     clock.Moment  // when commits stopped working
	outage    time.Duration // how long they did not work; 0 once that is noted
	soon      *time.Timer   // wakes the goroutine for what may wait; nil if nothing does
	within    time.Duration // the duration that soon was set to
	said      string        // the item of the last delta
	quick     bool          // the words come faster than the store takes them; see pace
	due       bool          // the next group must be committed now
	running   bool          // the goroutine lives
	ended     bool          // the goroutine will never live again
	idle      chan struct{} // closed when ended is set
	work      func()        // what the goroutine does: run
}

// New returns the Writer of a run whose first commit has left head. seq is the sequence
// machine after that commit's records.
func New(cfg Config, head *store.Head, seq agui.Sequencer) *Writer {
	w := &Writer{
		Config:    cfg,
		key:       head.Key,
		user:      head.User,
		Fence:     head.Fence,
		seq:       seq,
		last:      head.Next - 1,
		committed: head.Position(),
		acked:     cfg.Asked,
		idle:      make(chan struct{}),
	}
	if w.Go == nil {
		w.Go = func(f func()) { go f() }
	}
	w.work = w.run
	w.next = w.newGroup()
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.deadline = time.AfterFunc(w.GiveUp, w.stop)
	w.deadline.Stop()
	return w
}

// HasState reports whether the run's stream shows the state that is stored, which a patch can change.
func (w *Writer) HasState() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq.HasState() && !w.predicts.Load()
}

// Predicts reports whether the run's stream shows a state that is not stored: it has shown changes that are no
// references since the last state that is one.
func (w *Writer) Predicts() bool { return w.predicts.Load() }

// Delta appends text to an open item. It blocks while more than Config.Limit bytes wait to
// be committed.
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
	window := max(w.Window, w.pace())
	if w.Slowness != nil && w.said == id {
		window = max(window, w.Slowness.Window())
	}
	w.said = id
	if n := len(b.items); n > 0 && b.items[n-1].kind == kind && b.items[n-1].id == id {
		b.items[n-1].join(text)
	} else {
		b.items = append(b.items, item{kind: kind, id: id, said: text})
		w.last++
	}
	b.bytes += len(text)
	b.words++
	full := b.bytes > w.Limit
	if full {
		b.awaited()
		w.wake()
	} else {
		w.wakeWithin(window)
	}
	w.mu.Unlock()
	if full {
		return wait(ctx, b)
	}
	return nil
}

// Emit appends events, and whatever must come before them: open items are closed before
// the run's end. Like Step and Add it does not wait for the commit.
func (w *Writer) Emit(events ...agui.Event) error { return w.Step(events, nil) }

// Step appends events and, in the same commit, whatever f adds. f gets the position of
// the last record of the events; of the Writer it must call nothing but OpenSteps.
func (w *Writer) Step(events []agui.Event, f func(c *store.Commit, last store.Cursor)) error {
	return w.Add(events, AtOnce, f)
}

// Urgency is how soon something is committed, unless something else has it committed
// earlier.
type Urgency int

const (
	// AtOnce commits it now, or right after the commit in flight.
	AtOnce Urgency = iota
	// Soon commits it within 5 ms. It is for what nobody waits for: the results of
	// parallel pure tools, the checkpoint after them, and the beginning of the next
	// answer, if it comes at once, are then one commit.
	Soon
	// WithNext waits for whatever comes next.
	WithNext
	// WithWords commits it as soon as words would be committed. It is for what surrounds
	// them: where they begin and end.
	WithWords
)

// company is how long what is added with Soon may wait for other things to commit, and how
// long quick words may.
const company = 5 * time.Millisecond

// quickWords is how many words of one commit make them quick.
const quickWords = 8

// pace returns how long words may wait for more, whatever the Window is; the caller holds
// the lock. It is 0 unless the last words were quick: so many came during one commit, or
// while they waited, that these will have company too. The beginning of an answer that
// comes at once is then one commit with the rest of it. Words at the pace of reading never
// wait.
func (w *Writer) pace() time.Duration {
	if w.quick {
		return company
	}
	return 0
}

// Add is Step with a choice of urgency. It returns an error for an event that may not
// come next, or the error that ended the Writer.
func (w *Writer) Add(events []agui.Event, u Urgency, f func(c *store.Commit, last store.Cursor)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if err := w.add(events, f); err != nil {
		return err
	}
	switch u {
	case AtOnce:
		w.wake()
	case Soon:
		w.wakeWithin(company)
	case WithWords:
		w.wakeWithin(w.pace())
	}
	return nil
}

// add appends events, what must come before them, and what f adds, to the next group; the
// caller holds the lock.
func (w *Writer) add(events []agui.Event, f func(c *store.Commit, last store.Cursor)) error {
	for _, ev := range events {
		before, err := w.seq.Next(ev)
		if err != nil {
			return fmt.Errorf("emit %s: %w", agui.EventType(ev), err)
		}
		for _, b := range before {
			w.append(b)
		}
		w.append(ev)
	}
	if f != nil {
		f(&w.next.commit, store.Cursor{Number: w.last, Tag: w.Fence.Tag()})
	}
	return nil
}

// CloseOpen ends every item that is open, but no step: those end with what they are about.
func (w *Writer) CloseOpen() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	for _, ev := range w.seq.CloseContent() {
		w.append(ev)
	}
	w.wake()
	return nil
}

// OpenSteps returns the names of the steps that are open. Only a function that was given to
// Step, Add or Finish may call it.
func (w *Writer) OpenSteps() []string { return w.seq.Steps() }

// Flush waits until everything that was added is durable.
func (w *Writer) Flush(ctx context.Context) error { return w.flush(ctx, false) }

// Advance is Flush with a commit even if nothing was added, so the head moves: a process that
// has read the head before can no longer take the thread over.
func (w *Writer) Advance(ctx context.Context) error { return w.flush(ctx, true) }

func (w *Writer) flush(ctx context.Context, advance bool) error {
	w.mu.Lock()
	b := w.next
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	b.awaited().advance = b.advance || advance
	// The next group follows the one in flight, so waiting for it waits for both;
	// it may be empty.
	w.wake()
	w.mu.Unlock()
	return wait(ctx, b)
}

// Close commits what is left and ends the Writer. process owns the thread from then on,
// "" if nobody does because the run has ended. It returns once no goroutine of the Writer
// runs any more. When ctx ends, the store is not tried again.
func (w *Writer) Close(ctx context.Context, process string) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	b := w.next.awaited()
	b.closing = true
	w.Process = process
	w.wake()
	w.mu.Unlock()
	select {
	case <-w.idle:
	case <-ctx.Done():
		w.stop()
		<-w.idle
	}
	return wait(ctx, b)
}

// Finish is Step for the run's last events. After the same commit nobody owns the thread:
// a commit of its own for that would have no record, so it would not wake those who wait
// for the thread to be free. The events are added when their commit is made, because until
// then the Writer may have something to say itself; f is called then, on the Writer's
// goroutine. Finish returns once no goroutine of the Writer runs any more.
func (w *Writer) Finish(ctx context.Context, events []agui.Event, f func(c *store.Commit, last store.Cursor)) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	b := w.next.awaited()
	b.closing, b.last, b.finish, w.Process = true, events, f, ""
	w.wake()
	w.mu.Unlock()
	<-w.idle
	return wait(ctx, b)
}

// Abandon ends the Writer with cause, without committing what is left. It waits for a
// commit in flight.
func (w *Writer) Abandon(cause error) {
	w.mu.Lock()
	w.fail(cause)
	w.mu.Unlock()
	<-w.idle
}

// Ready waits while the store cannot be reached, so that no model call and no tool starts
// then. It returns the error that ended the Writer, if any.
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

// Written returns how many bytes of data were written since its last call.
func (w *Writer) Written() int64 { return w.bytes.Swap(0) }

// Acknowledged returns when the last commit that the store has acknowledged was sent. Until
// then at least, this process owned the thread: the acknowledgment says what was so when the
// commit landed, and it may have been under way for any time.
func (w *Writer) Acknowledged() clock.Moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// fail ends the Writer with err; the caller holds the lock.
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
		w.next.end(w.err)
		w.next = nil
	}
	if !w.running {
		w.end()
	}
}

// end marks the Writer as ended, once it has failed or is closed and no goroutine of it
// runs; the caller holds the lock.
func (w *Writer) end() {
	if !w.ended {
		w.ended = true
		w.stop()
		close(w.idle)
	}
}

// ErrClosed is the error of a Writer after Close or Finish.
var ErrClosed = errors.New("the run's writer is closed")
