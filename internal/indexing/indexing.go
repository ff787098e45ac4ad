// Package indexing completes the index of a store. Threads that were last written by a version without
// an index are in no list of it. A walk past all threads enters them, once in the life of a store: it
// begins when no server of such a version can write any more, any process continues it where another one
// left it, and it is complete when it has come past all threads and found none to enter. Until then, who
// needs all threads of a list looks at the threads themselves.
package indexing

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

const (
	// early is how far apart a process looks whether the walk may begin, and other whether
	// another process goes on with it; silent is how long that one may be silent.
	early  = time.Second
	other  = 5 * time.Second
	silent = 15 * time.Second
	// page is how many threads are looked at at a time, atOnce how many of them at the same
	// time, and pause is how long the walk rests for each of them: it bounds what others feel.
	page   = 100
	atOnce = 8
	pause  = time.Millisecond
	// tries bounds how often a thread is read again because it has moved.
	tries = 8
	// saveEvery is how far apart the walk stores how far it has come.
	saveEvery = time.Second
	// lists is the version of the lists that a walk enters threads in. A version of Holdfast that adds a list
	// has a larger one, and a data format of its own, because no other version may write any more then.
	lists = 2
)

// Completed is what a store keeps of an index that has all threads.
func Completed() []byte { return fmt.Appendf(nil, `{"complete":true,"lists":%d}`, lists) }

// Progress is how far the walk has come.
type Progress struct {
	// Complete means that the index has all threads.
	Complete bool `json:"complete"`
	// Pass counts how often the walk has begun to come past all threads, from 1, and Threads is how
	// many it has come past this time. Before it begins, both are 0.
	Pass    int   `json:"pass"`
	Threads int64 `json:"threads"`
	// Entered is how many threads it has entered in all.
	Entered int64 `json:"entered"`
}

// kept is what the store keeps of it.
type kept struct {
	Progress
	// Lists is the version of the lists that this is about.
	Lists int `json:"lists"`
	// Found is how many threads it has entered in this pass, and After is where the next page begins.
	Found int64  `json:"found,omitempty"`
	After string `json:"after,omitempty"`
	// By is the process that goes on with the walk, which was there At that time.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Config is what a Walk needs. Every field must be set.
type Config struct {
	Store  store.Store // holds all threads
	Engine Engine      // runs them
	Log    *slog.Logger
	Now    clock.Shared
	// NewID returns a random id; prefix says what it is for.
	NewID func(prefix string) string
}

// Engine is what a Walk needs of the engine that runs threads.
type Engine interface {
	// Lock serializes what this process decides about one thread, until unlock is called.
	Lock(key store.ThreadKey) (unlock func())
	// Commit tries once to commit, and reports that to the observer.
	Commit(ctx context.Context, at holdfast.Iteration, c *store.Commit) error
	// Share returns how long this process waits between two looks at what all processes look at,
	// if one that is alone waits for d.
	Share(d time.Duration) time.Duration
	// DataFormat returns which data format is written, as was agreed upon the last time.
	DataFormat() dataformat.Status
}

// Walk is the walk, as one process takes part in it.
type Walk struct {
	cfg  Config
	read thread.Reader
	id   string // names this process in what the store keeps; it is in nothing that users see
	seen atomic.Pointer[Progress]
}

// New returns a Walk. Keep begins it.
func New(cfg Config) *Walk {
	x := &Walk{cfg: cfg, read: thread.Reader{Store: cfg.Store}, id: rand.Text()}
	x.seen.Store(&Progress{})
	return x
}

// Progress returns how far the walk has come, as far as this process knows. Until it is complete, a list
// of the index may lack threads that were last written by a version without one.
func (x *Walk) Progress() Progress { return *x.seen.Load() }

// Keep walks when it may, until the index is complete or ctx ends.
func (x *Walk) Keep(ctx context.Context) {
	unread := false
	for wait := time.Duration(0); ; wait = max(early, x.cfg.Engine.Share(other)) {
		if x.cfg.Engine.DataFormat().Write < thread.FormatIndexed {
			wait = early // this process knows it without asking
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := routine.Caught(func() error { return x.walk(ctx) })
		if err != nil && ctx.Err() == nil && !unread {
			x.cfg.Log.Warn("the index could not be completed; it is tried again", "error", err)
		}
		if unread = err != nil; x.seen.Load().Complete {
			return
		}
	}
}

// walk walks on, unless another process does.
func (x *Walk) walk(ctx context.Context) error {
	if x.cfg.Engine.DataFormat().Write < thread.FormatIndexed {
		return nil // a server without an index may write
	}
	p, err := x.load(ctx)
	if err != nil || p.Complete || p.By != "" && p.By != x.id && x.cfg.Now().Age(p.At) < silent {
		return err
	}
	if p.Lists > lists {
		return nil // this process does not know all of the lists
	}
	p.Pass = max(p.Pass, 1)
	saved, come := clock.Now(), false
	for ctx.Err() == nil {
		looked, failed := x.past(ctx, p)
		if come = come || failed == nil; come && (p.Complete || failed != nil || saved.Ran() >= saveEvery) {
			saved = clock.Now()
			if goesOn, err := x.goOn(ctx, p); err != nil || !goesOn {
				return err
			}
		}
		if failed != nil {
			return failed
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(max(looked, 1)) * pause):
		}
	}
	return ctx.Err()
}

// goOn stores how far the walk has come. It reports false if there is no more to do for this process.
func (x *Walk) goOn(ctx context.Context, p *kept) (bool, error) {
	is, err := x.load(ctx)
	if err != nil || is.Complete || is.Lists > lists || is.By != "" && is.By != x.id && is.At.After(p.At) {
		return false, err // another process goes on with it
	}
	p.By = x.id
	err = x.save(ctx, p)
	if err == nil && p.Complete && p.Entered > 0 {
		x.cfg.Log.Info("the index has every thread now", "entered", p.Entered)
	}
	return err == nil && !p.Complete, err
}

// load reads how far the walk has come.
func (x *Walk) load(ctx context.Context) (*kept, error) {
	text, err := x.cfg.Store.Progress(ctx, nil)
	if err != nil {
		return nil, err
	}
	p := &kept{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, p); err != nil {
			x.cfg.Log.Warn("how far the index is complete cannot be read; its walk begins again", "error", err)
			p = &kept{}
		}
	}
	if p.Lists < lists { // the walk that came so far has entered nothing in later lists
		p = &kept{Lists: lists}
	}
	x.see(p)
	return p, nil
}

// save stores it.
func (x *Walk) save(ctx context.Context, p *kept) error {
	p.At = x.cfg.Now().UTC()
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := x.cfg.Store.Progress(ctx, text); err != nil {
		return err
	}
	x.see(p)
	return nil
}

// see tells this process.
func (x *Walk) see(p *kept) {
	seen := p.Progress
	x.seen.Store(&seen)
}

// past enters one page of threads, and returns how many they are. If a thread cannot be entered now, the
// page is tried again later.
func (x *Walk) past(ctx context.Context, p *kept) (int, error) {
	heads, next, err := x.cfg.Store.Walk(ctx, p.After, page)
	if err != nil && !errors.Is(err, store.ErrUnreadable) {
		return 0, err
	}
	var entered atomic.Int64
	var mu sync.Mutex
	var failed error
	routine.Each(len(heads), atOnce, func(i int) {
		err := routine.Caught(func() error {
			was, err := x.enter(ctx, heads[i].Key)
			if was {
				entered.Add(1)
			}
			return err
		})
		if err != nil && !thread.Unreadable(err) && !errors.Is(err, store.ErrNotFound) {
			mu.Lock()
			failed = fmt.Errorf("thread %s: %w", heads[i].Key, err)
			mu.Unlock()
		}
	})
	if failed != nil {
		return 0, failed
	}
	p.Threads, p.Found, p.Entered = p.Threads+int64(len(heads)), p.Found+entered.Load(), p.Entered+entered.Load()
	if p.After = next; next == "" {
		if p.Complete = p.Found == 0; !p.Complete {
			p.Pass, p.Threads, p.Found = p.Pass+1, 0, 0
		}
	}
	return len(heads), nil
}

// enter enters a thread where it is missing, and reports whether it was anywhere.
func (x *Walk) enter(ctx context.Context, key store.ThreadKey) (bool, error) {
	missing, err := x.cfg.Store.Mend(ctx, key)
	if err != nil {
		return false, err
	}
	for range tries {
		entered, err := x.list(ctx, key)
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrFenced) {
			return entered || missing > 0, err
		}
	}
	return missing > 0, nil // it runs
}

// list puts a thread that does not run into the lists that its state names, if it is in others. It reports
// whether it was. The next commit of a run lists the others.
func (x *Walk) list(ctx context.Context, key store.ThreadKey) (bool, error) {
	defer x.cfg.Engine.Lock(key)()
	t, err := x.read.Head(ctx, key)
	if err != nil || t.State.Running() {
		return false, err
	}
	c := &store.Commit{
		Key:       key,
		ID:        thread.UnseenCommit(t.Head.ETag, x.cfg.NewID("c")),
		Expect:    t.Head.Position(),
		User:      t.Head.User,
		Fence:     t.Head.Fence,
		Process:   t.Head.Process,
		UpdatedAt: t.Head.UpdatedAt,
	}
	thread.Relist(c, t.State)
	is, err := x.cfg.Store.Listed(ctx, key)
	if err != nil || thread.SameListings(is, c.Listings) {
		return false, err
	}
	return true, x.cfg.Engine.Commit(ctx, t.Place(), c)
}
