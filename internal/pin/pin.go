// Package pin is about runs that wait for a process with their agent, or with their agent's
// revision. Such a run has lost its owner. No process has its agent; or the agent says that it
// goes on with the revision that it was with, and a process has another one. That process leaves
// it alone, until one that can go on with it takes it over, its user cancels it, or its time is up.
package pin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The wait of a run, and its end, are a part of its thread, so they outlive the processes that
// wait with it, and everybody who watches or lists the thread sees them. It is stored by the
// process that finds the run first and still finds it a while later: a process with the
// revision needs less time than that to take it over. The commit takes the thread's fence, as
// a takeover does, but leaves the thread to the owner that it has lost.

// Verdict is what is to be done about a run that has lost its owner.
type Verdict int

// The verdicts.
const (
	// Take: the run does not wait. Look never returns it.
	Take Verdict = iota
	// Wait: nothing.
	Wait
	// Stored: nothing more; it was just stored that the run waits.
	Stored
	// Over: the run has waited for as long as it may, and ends.
	Over
	// Cancelled: its user has cancelled the run, so it is taken over to be ended.
	Cancelled
)

// Storage is what the waiting needs of a store.
type Storage interface {
	// Inbox is that of [store.Reader].
	Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error)
	// Lease is that of [store.Presence].
	Lease(ctx context.Context, process string) (store.Lease, error)
}

// Config is what a Keeper needs.
type Config struct {
	Store   Storage
	Process string // this process, which has a lease
	// Grace is how long a run is left to others before it is stored that it waits.
	Grace time.Duration
	// Timeout is how long a run waits.
	Timeout time.Duration
	// Cancels reports whether an item of the inbox cancels the run.
	Cancels func(item store.InboxItem, run string) bool
	// Commit tries once to commit.
	Commit func(ctx context.Context, at holdfast.Iteration, c *store.Commit) error
	Now    clock.Shared
	NewID  func(prefix string) string
	Log    *slog.Logger
}

// Keeper decides about the runs that wait.
type Keeper struct {
	cfg Config

	mu sync.Mutex
	// found is when this process first found a run without its owner.
	found map[place]time.Time
}

// place is a run that has lost one owner.
type place struct {
	key   store.ThreadKey
	fence store.Fence
}

// New returns a Keeper that has found nothing yet.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, found: map[place]time.Time{}} }

// Look returns what is to be done about a thread's run whose owner is gone, by a process
// without its agent, or with another revision of it than the run's. others means that another
// process has what the run needs, so it is left to that one. The caller holds the thread's lock.
// The error is the store's.
func (k *Keeper) Look(ctx context.Context, t *thread.Thread, revision string, others bool) (Verdict, error) {
	items, err := k.cfg.Store.Inbox(ctx, t.Key)
	if err != nil {
		return Wait, err
	}
	for _, it := range items {
		if k.cfg.Cancels(it, t.State.Run()) {
			return Cancelled, nil
		}
	}
	if others {
		k.forget(t)
		return Wait, nil
	}
	w := t.State.Waiting
	waited := time.Duration(0)
	if w == nil {
		if waited = k.waited(t); waited < k.cfg.Grace {
			return Wait, nil
		}
	}
	now, err := k.now(ctx)
	switch {
	case err != nil || now.IsZero():
		return Wait, err
	case w == nil:
		return Stored, k.put(ctx, t, revision, now.Add(-waited))
	case now.Before(w.Until):
		return Wait, nil
	}
	return Over, nil
}

// forget has the time begin again in which nobody has what the run needs.
func (k *Keeper) forget(t *thread.Thread) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.found, place{t.Key, t.Head.Fence})
}

// waited returns how long ago this process first found the run.
func (k *Keeper) waited(t *thread.Thread) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := place{t.Key, t.Head.Fence}
	since, known := k.found[at]
	if known {
		return time.Since(since)
	}
	for other, since := range k.found { // those that others have taken over
		if time.Since(since) > 10*k.cfg.Grace {
			delete(k.found, other)
		}
	}
	k.found[at] = time.Now()
	return 0
}

// now returns the store's time, by which all processes agree how long a run has waited. It
// is zero while this process has no lease.
func (k *Keeper) now(ctx context.Context) (time.Time, error) {
	l, err := k.cfg.Store.Lease(ctx, k.cfg.Process)
	if err != nil || l.Until.IsZero() {
		return time.Time{}, err
	}
	return l.Until.Add(-l.Left).UTC(), nil
}

// put stores that the run waits.
func (k *Keeper) put(ctx context.Context, t *thread.Thread, revision string, since time.Time) error {
	w := threads.Waiting{Revision: revision, Since: since.Truncate(time.Millisecond)}
	w.Until = w.Since.Add(k.cfg.Timeout)
	ev := agui.Custom{Name: "holdfast.waiting", Value: thread.MustJSON(w)}
	ev.Timestamp = k.cfg.Now().UnixMilli()
	c := &store.Commit{
		Key:       t.Key,
		ID:        k.cfg.NewID("c"),
		Expect:    t.Head.Position(),
		User:      t.Head.User,
		Fence:     store.Fence{Epoch: t.Head.Fence.Epoch + 1, Nonce: k.cfg.NewID("")},
		Process:   t.Head.Process,
		UpdatedAt: k.cfg.Now().Time(),
		Records:   [][]byte{agui.Append(nil, ev)},
	}
	st := t.State.Clone()
	st.Waiting = &w
	st.Bytes += thread.BytesOf(c)
	thread.Save(c, st)
	if err := k.cfg.Commit(ctx, t.Place(), c); err != nil {
		return err
	}
	words := "a run waits for a server with its agent's revision"
	if revision == "" {
		words = "a run waits for a server with its agent"
	}
	k.cfg.Log.Warn(words,
		"thread", t.Key.Thread, "run", st.Run(), "agent", st.Agent, "revision", revision, "until", w.Until)
	return nil
}
