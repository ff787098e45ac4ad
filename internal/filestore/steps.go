package filestore

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// A commit that creates a thread with thousands of messages is written in steps, so that
// others are written in between: first the messages, below a number that no name leads to,
// and then everything else with the name, which makes all of it visible at once. While a
// number has no name, a mark says so; what a process that died left below one is removed
// when the store is opened.

// stepMessages is how many messages are one step: they take a few milliseconds.
const stepMessages = 1000

// commitInSteps is Commit for a commit of many messages that expects no thread.
func commitInSteps(ctx context.Context, s *committer, c *commit) error {
	err := s.view(ctx, func(v view) error {
		number, err := v.find(c.Key)
		if err == nil && number != 0 {
			err = errAlready // it is refused, or was written before
		}
		return err
	})
	if errors.Is(err, errAlready) {
		return s.submit(ctx, c)
	}
	if err != nil {
		return err
	}
	for from := 0; from < len(c.messages); from += stepMessages {
		step := &step{c: c, from: from, to: min(from+stepMessages, len(c.messages))}
		if err := s.submit(ctx, step); err != nil {
			// It may still be written. The mark stays, for the next time the store is opened.
			return err
		}
		c.number, c.size = step.number, c.size-step.bytes()
	}
	err = s.submit(ctx, c)
	var conflict *store.ConflictError
	if (err == nil || errors.As(err, &conflict) || errors.Is(err, store.ErrInvalid)) && !c.written {
		// Another commit was faster, or this one cannot be written. Anything that cannot be
		// removed now is removed when the store is opened.
		_ = s.submit(context.WithoutCancel(ctx), &discard{numbers: []uint64{c.number}})
	}
	return err
}

// step writes some of the messages of a commit.
type step struct {
	c        *commit
	from, to int
	number   uint64 // of the thread; the first step gets one
}

func (o *step) bytes() (n int) {
	for _, m := range o.c.messages[o.from:o.to] {
		n += len(m) + messageWork
	}
	return n
}

func (o *step) tell(*storekit.Waiters) {}

func (o *step) check(*txn) error { return nil }

func (o *step) write(t *txn) error {
	o.number = o.c.number
	if o.number == 0 {
		t.numbers.thread++
		o.number = t.numbers.thread
		if err := t.set(stepsKey(o.number), nil); err != nil {
			return err
		}
	}
	return o.c.writeMessages(t, o.number, 0, o.from, o.to)
}
