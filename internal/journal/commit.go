package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The side of the Writer that commits. One goroutine takes the group that has gathered,
// commits it, shows what the store acknowledged, and takes the next, until nothing is
// due. It is the only one that talks to the store for the run. While the store does not
// answer it repeats the same commit, so nothing is written twice, and the run waits.

// wake has what was added committed, now or right after the commit in flight; the caller
// holds the lock. The goroutine lives only while it has work: thousands of streams wait
// at a time, and each goroutine takes several KB.
func (w *Writer) wake() {
	w.due = true
	if !w.running && !w.ended {
		w.running = true
		w.Go(w.work)
	}
}

// wakeWithin has what was added committed within d, unless something else has it
// committed earlier; the caller holds the lock.
func (w *Writer) wakeWithin(d time.Duration) {
	switch {
	case d <= 0:
		w.wake()
	case w.soon == nil:
		w.soon, w.within = time.AfterFunc(d, w.wakeLater), d
	case d < w.within:
		w.soon.Reset(d)
		w.within = d
	}
}

// wakeLater is wake for the timer.
func (w *Writer) wakeLater() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake()
}

// stopTimer stops the timer when nothing waits for it; the caller holds the lock.
func (w *Writer) stopTimer() {
	if w.soon != nil {
		w.soon.Stop()
		w.soon = nil
	}
}

// wait waits until an awaited group is committed, and returns its error.
func wait(ctx context.Context, b *group) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run is the Writer's goroutine. It commits until nothing is due.
func (w *Writer) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.due && w.next != nil {
		if w.paused(); w.next == nil {
			break
		}
		b := w.next
		err := w.complete(b)
		w.next, w.due = w.newGroup(), false
		if b.words > 0 {
			w.quick = b.words >= quickWords
		}
		w.stopTimer()
		pos, process := w.committed, w.Process
		if err == nil {
			w.mu.Unlock()
			err = w.write(b, pos, process)
			w.mu.Lock()
		}
		b.end(err)
		if err == nil && w.outage > 0 {
			w.noteOutage()
		}
		if err != nil || b.closing {
			w.fail(errors.Join(err, ErrClosed))
		}
	}
	w.running = false
	if w.next == nil {
		w.end()
	}
}

// paused calls Pause, if there is one; the caller holds the lock, which it does without
// meanwhile.
func (w *Writer) paused() {
	if w.Pause != nil {
		w.mu.Unlock()
		defer w.mu.Lock()
		w.Pause()
	}
}

// complete adds the run's last events to their group; the caller holds the lock.
func (w *Writer) complete(b *group) error {
	if b.last == nil {
		return nil
	}
	return w.add(b.last, b.finish)
}

// noteOutage adds an event that says that the store is back; the caller holds the lock.
// If the commit that waited for the store was the run's last, there is no place for it.
func (w *Writer) noteOutage() {
	ev := agui.Custom{
		Name:  "holdfast.store_recovered",
		Value: thread.MustJSON(map[string]any{"outageMs": w.outage.Milliseconds()}),
	}
	ev.Timestamp = w.Now().UnixMilli()
	w.outage = 0
	if w.next == nil || w.add([]agui.Event{ev}, nil) != nil {
		return
	}
	w.due = true
}

// write commits one group at the position pos. It keeps trying while the store cannot be
// reached; each try has the same commit id, so nothing is written twice.
func (w *Writer) write(b *group, pos store.Position, process string) error {
	c := &b.commit
	if len(b.items) == 0 && emptyCommit(c) && !b.closing && !b.advance {
		return nil
	}
	c.Key, c.Expect, c.User = w.key, pos, w.user
	c.Fence, c.Process, c.UpdatedAt = w.Fence, process, w.Now().Time()
	thread.Timed(c)
	c.Records = encodeItems(b.items)
	sent := clock.Now()
	if err := w.commit(c); err != nil {
		return err
	}
	w.mu.Lock()
	w.committed = store.Position{Fence: c.Fence, Next: pos.Next + uint64(len(c.Records)), ETag: c.ID}
	w.acked = sent
	w.mu.Unlock()
	if w.Slowness != nil {
		w.Slowness.note(sent.Ran())
	}
	w.bytes.Add(thread.BytesOf(c))
	if len(c.Records) > 0 {
		records := thread.RecordsOf(c)
		for i := range b.items {
			if full := b.items[i].full; full != nil {
				records[i].Data = full
			}
		}
		w.Shown(records)
	}
	return nil
}

// commit tries until the store answers, which may be a refusal, or until GiveUp has
// passed. A commit in flight is not cancelled with its run.
func (w *Writer) commit(c *store.Commit) error {
	w.deadline.Reset(w.GiveUp)
	defer w.deadline.Stop()
	ctx := w.ctx
	begun := clock.Now()
	pause := 10 * time.Millisecond
	for {
		err := w.Commit(ctx, c)
		if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) ||
			errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrUnreadable) {
			w.setHealthy(true)
			return err
		}
		w.setHealthy(false)
		if w.StopAtOnce {
			return fmt.Errorf("stopped at the first failure of the store: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %w", begun.Ran().Round(time.Millisecond), err)
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// setHealthy notes whether the store answers, and wakes those who wait for it.
func (w *Writer) setHealthy(ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ok && w.unhealthy != nil:
		close(w.unhealthy)
		w.unhealthy = nil
		w.outage = w.since.Ran()
		w.Back(w.outage)
	case !ok && w.unhealthy == nil:
		w.unhealthy = make(chan struct{})
		w.since = clock.Now()
	}
}
