package thread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// Everything that reads a thread from the store reads it here: a request before it is decided,
// a run that begins, a takeover, a rewind, and upkeep. Load, Existing and Head read a thread
// as it stands; Ground and Resumable add what a run works with. Reads are not one transaction.
// The result is only a basis for a commit, which the store refuses if the head has moved
// since.

// Reader reads threads from Store. It is the one way from a store to a thread. Its errors
// are safe to show: see ReadError.
type Reader struct {
	Store store.Reader
	// Kept are histories that need not be read; nil if there are none.
	Kept *Kept
}

// Thread is a thread as it was when it was read.
type Thread struct {
	Key     store.ThreadKey // tenant and id
	Head    *store.Head     // nil for a thread that does not exist
	State   *State          // from the head; nil without one
	History *History        // nil if it was not read
}

// Load reads a thread with its history, which is not empty. A thread that does not exist
// has no head; one that belongs to somebody else is reported as not found.
func (rd Reader) Load(ctx context.Context, who holdfast.Principal, id string) (*Thread, error) {
	for {
		t, err := rd.find(ctx, who, id)
		if err != nil || t.Head == nil {
			return t, err
		}
		if err = rd.loadHistory(ctx, t); err == nil {
			return t, nil
		}
		if !rd.Moved(ctx, t, err) {
			return nil, err
		}
	}
}

// loadHistory reads the thread's history.
func (rd Reader) loadHistory(ctx context.Context, t *Thread) (err error) {
	if t.History = rd.Kept.History(t.Key, t.Head.ETag, t.State.Leaf); t.History == nil {
		t.History, err = rd.History(ctx, t.Key, t.State.Leaf)
	}
	if err != nil {
		return err
	}
	if len(t.History.Path) == 0 {
		return ReadError(t.Key, fmt.Errorf("%w: the head names no message", ErrUnreadable))
	}
	t.History.Queued = map[string]bool{}
	for _, raw := range t.State.Queued {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			return ReadError(t.Key, fmt.Errorf("a queued message: %w: %w", ErrUnreadable, err))
		}
		t.History.Queued[m.ID] = true
	}
	return nil
}

// Moved reports whether err, which something that the thread refers to was read with, may be
// due to a commit or a deletion since t was read: then it says nothing about the thread as it
// is now, and reading it again gives the right answer.
func (rd Reader) Moved(ctx context.Context, t *Thread, err error) bool {
	if !Unreadable(err) && !errors.Is(err, store.ErrCursor) && !errors.Is(err, store.ErrNotFound) {
		return false
	}
	head, err := rd.Store.Head(ctx, t.Key)
	if errors.Is(err, store.ErrNotFound) {
		return t.Head.ETag != "" // it was there
	}
	return err == nil && head.ETag != t.Head.ETag
}

// Ground is what a run works with: the messages up to a leaf, the shared state, and the
// recorded results that calls may get instead of running.
type Ground struct {
	History *History // up to the state's leaf
	Shared  Shared   // the shared state
	// Recorded are the results by CallHash, the oldest first.
	Recorded map[string][]store.Value
}

// Resumable is everything that a run needs to continue from where its thread stands.
type Resumable struct {
	Ground
	Run *Run // how the run began
	// End is how the run ended; nil for one that died before it was stored.
	End *RunEnd
	// Started are the ids of the calls that have an intent and no result.
	Started map[string]bool
	// Repeatable are those of them that are started again: their tools may run twice.
	Repeatable map[string]bool
	// Unstarted are the intents of calls that no owner has started, by call.
	Unstarted map[string]*Intent
	// Undecoded is the history, if Ground does not have it.
	Undecoded *Undecoded
}

// Ground reads what a new run on the thread works with. It uses t.History if that was
// read before.
func (rd Reader) Ground(ctx context.Context, t *Thread) (g Ground, err error) {
	if g.History = t.History; g.History == nil {
		if g.History, err = rd.History(ctx, t.Key, t.State.Leaf); err != nil {
			return g, err
		}
	}
	err = rd.besides(ctx, t, &g)
	return g, err
}

// besides reads what there is besides the messages.
func (rd Reader) besides(ctx context.Context, t *Thread, g *Ground) (err error) {
	if g.Shared, err = rd.SharedVersion(ctx, t.Key, t.State.Shared); err != nil {
		return err
	}
	g.Recorded, err = rd.recorded(ctx, t.Key, t.State)
	return err
}

// Resumable reads what it takes to continue the thread's run.
func (rd Reader) Resumable(ctx context.Context, t *Thread) (*Resumable, error) {
	g, err := rd.Ground(ctx, t)
	if err != nil {
		return nil, err
	}
	r := &Resumable{Ground: g}
	if r.End, err = rd.RunEnd(ctx, t.Key, t.State.Run()); err != nil {
		return nil, err
	}
	return rd.resumable(ctx, t, r)
}

// Orphan is Resumable for a process that is not yet the thread's owner: the messages are read,
// and not decoded. The run has not ended, so its end is not read.
func (rd Reader) Orphan(ctx context.Context, t *Thread) (*Resumable, error) {
	u, err := rd.Undecoded(ctx, t.Key, t.State.Leaf)
	if err != nil {
		return nil, err
	}
	r := &Resumable{Undecoded: u}
	if err := rd.besides(ctx, t, &r.Ground); err != nil {
		return nil, err
	}
	return rd.resumable(ctx, t, r)
}

// resumable reads what is about the thread's run.
func (rd Reader) resumable(ctx context.Context, t *Thread, r *Resumable) (_ *Resumable, err error) {
	if r.Run, err = rd.Run(ctx, t.Key, t.State.Run()); err != nil {
		return nil, err
	}
	return r, rd.intents(ctx, t.Key, r)
}

// StartAgain counts in st that the open calls that were started and have no result are about
// to be started once more, unless their tools must not run twice and they have kept nothing
// to go on with.
func (r *Resumable) StartAgain(st *State) {
	for i := range st.Calls {
		c := &st.Calls[i]
		again := r.Started[c.ID] && (r.Repeatable[c.ID] || c.Kept != nil)
		if again && !c.Waits() && c.Outside == nil {
			c.StartAgain()
		}
	}
}

// RenewIntents adds to the commit c the intents of the calls that nobody has started: the owner
// that makes the commit does.
func (r *Resumable) RenewIntents(c *store.Commit, st *State) {
	for i := range st.Calls {
		if intent := r.Unstarted[st.Calls[i].ID]; intent != nil {
			intent.Fence, intent.At, intent.NotStarted = c.Fence, c.UpdatedAt, false
			c.Put = append(c.Put, store.Value{Kind: store.KindIntent, ID: st.Calls[i].ID, Data: MustJSON(intent)})
		}
	}
}

// Last returns the position of the thread's last record. Every acquisition writes a
// record, so the last one has the tag of the head's fence.
func (t *Thread) Last() store.Cursor {
	if t.Head.Next <= 1 {
		return store.Cursor{}
	}
	return store.Cursor{Number: t.Head.Next - 1, Tag: t.Head.Fence.Tag()}
}

// find reads a thread's head for its owner. A thread that does not exist has no head.
func (rd Reader) find(ctx context.Context, who holdfast.Principal, id string) (*Thread, error) {
	t := &Thread{Key: store.ThreadKey{Tenant: who.Tenant, Thread: id}}
	head, err := rd.Store.Head(ctx, t.Key)
	if errors.Is(err, store.ErrNotFound) {
		return t, nil
	}
	// Unreadable parts are nobody's business but the owner's. Where the owner cannot be told
	// either, nobody is told that there is no thread: its owner would take it for deleted.
	if head != nil && head.User != who.User && (err == nil || Unreadable(err)) {
		return nil, NotFound(id)
	}
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	st, err := DecodeState(head.State)
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	t.Head, t.State = head, st
	return t, nil
}

// Head reads a thread's head for the engine itself, for any user. The error is the store's
// own, or that of DecodeState.
func (rd Reader) Head(ctx context.Context, key store.ThreadKey) (*Thread, error) {
	head, err := rd.Store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	st, err := DecodeState(head.State)
	return &Thread{Key: key, Head: head, State: st}, err
}

// FindWhole finds threads in a list of the index, about q.Limit of them: of those at the last place, it finds
// all, so that who goes on with the places after it misses none. more reports whether there are others.
func FindWhole(ctx context.Context, index store.Index, q store.Query) (found []store.Found, more bool, err error) {
	for q.Limit++; ; q.Limit *= 4 {
		found, err = index.Find(ctx, q)
		if err != nil || len(found) < q.Limit {
			return found, false, err
		}
		last := found[len(found)-1].At
		found = slices.DeleteFunc(found, func(f store.Found) bool { return f.At.Equal(last) })
		if len(found) > 0 {
			return found, true, nil
		}
	}
}

// Existing reads the head of a thread that must exist, for its owner. It does not read
// the history.
func (rd Reader) Existing(ctx context.Context, who holdfast.Principal, id string) (*Thread, error) {
	t, err := rd.find(ctx, who, id)
	if err == nil && t.Head == nil {
		return nil, NotFound(id)
	}
	return t, err
}

// CheckStale returns an error if a history of so many messages is not the one that the
// thread's state was written for.
func CheckStale(key store.ThreadKey, st *State, messages int) error {
	if st.Count == messages {
		return nil
	}
	return stale(key, messages, st.Count)
}

// blob reads a blob; false if it is not there.
func (rd Reader) blob(ctx context.Context, key store.ThreadKey, id string) ([]byte, bool, error) {
	b, err := rd.Store.Value(ctx, key, store.KindBlob, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, ReadError(key, err)
	}
	return b, true, nil
}

// missing is the error for a blob that the thread refers to and that is not there: the
// thread was deleted meanwhile, or is damaged.
func (rd Reader) missing(ctx context.Context, key store.ThreadKey, blob string) error {
	if _, err := rd.Store.Head(ctx, key); errors.Is(err, store.ErrNotFound) {
		return ReadError(key, err)
	}
	return ReadError(key, fmt.Errorf("%w: %s", ErrNoBlob, blob))
}

// Size returns how many bytes the thread takes in the store.
func (rd Reader) Size(ctx context.Context, key store.ThreadKey) (total int64, err error) {
	size, err := rd.Store.Size(ctx, key)
	if err != nil {
		return 0, ReadError(key, err)
	}
	for _, n := range size {
		total += n
	}
	return total, nil
}

// Run reads how a run began. A run that the thread does not have is reported as not
// found.
func (rd Reader) Run(ctx context.Context, key store.ThreadKey, id string) (*Run, error) {
	raw, err := rd.Store.Value(ctx, key, store.KindRun, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, RunNotFound(key.Thread, id)
	}
	if err != nil {
		return nil, ReadError(key, err)
	}
	rec := &Run{}
	if err := Decode(raw, rec); err != nil {
		return nil, ReadError(key, err)
	}
	return rec, nil
}

// RunEnd reads how a run ended; nil if it has not.
func (rd Reader) RunEnd(ctx context.Context, key store.ThreadKey, run string) (*RunEnd, error) {
	raw, err := rd.Store.Value(ctx, key, store.KindOutcome, run)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, ReadError(key, err)
	}
	var o RunEnd
	if err := Decode(raw, &o); err != nil {
		return nil, ReadError(key, err)
	}
	return &o, nil
}

// Started returns the ids of the calls that have an intent and no result yet, and may have been
// started.
func (rd Reader) Started(ctx context.Context, key store.ThreadKey) (map[string]bool, error) {
	var r Resumable
	err := rd.intents(ctx, key, &r)
	return r.Started, err
}

// intents reads which calls have an intent and no result, and what is known of them.
func (rd Reader) intents(ctx context.Context, key store.ThreadKey, r *Resumable) error {
	values, err := rd.Store.Values(ctx, key, store.KindIntent, "", 0)
	if err != nil {
		return ReadError(key, err)
	}
	r.Started, r.Repeatable = make(map[string]bool, len(values)), make(map[string]bool, len(values))
	for _, v := range values {
		var i Intent
		err := Decode(v.Data, &i)
		if err == nil && i.NotStarted {
			if r.Unstarted == nil {
				r.Unstarted = map[string]*Intent{}
			}
			r.Unstarted[v.ID] = &i
			continue
		}
		// One that cannot be read is an intent, too, and counts for nothing else.
		if err == nil && i.Effect != holdfast.EffectOnce && i.Effect != holdfast.EffectQuery {
			r.Repeatable[v.ID] = true
		}
		r.Started[v.ID] = true
	}
	return nil
}

// Intent reads what was about to be done for a call.
func (rd Reader) Intent(ctx context.Context, key store.ThreadKey, call string) (*Intent, error) {
	raw, err := rd.Store.Value(ctx, key, store.KindIntent, call)
	if err != nil {
		return nil, err
	}
	var i Intent
	return &i, Decode(raw, &i)
}

// recorded reads the recorded results that are left to use. Only a thread that went back
// has any.
func (rd Reader) recorded(ctx context.Context, key store.ThreadKey, st *State) (map[string][]store.Value, error) {
	if !st.Reuse {
		return nil, nil
	}
	values, err := rd.Store.Values(ctx, key, store.KindReuse, "", 0)
	if err != nil {
		return nil, ReadError(key, err)
	}
	slices.Reverse(values) // oldest first
	left := map[string][]store.Value{}
	for _, v := range values {
		hash, _, _ := bytes.Cut([]byte(v.ID), []byte("/"))
		left[string(hash)] = append(left[string(hash)], v)
	}
	return left, nil
}

// Place returns where the thread stands, for the observer.
func (t *Thread) Place() holdfast.Iteration {
	return holdfast.Iteration{
		Agent:     t.State.Agent,
		Principal: holdfast.Principal{Tenant: t.Key.Tenant, User: t.Head.User},
		Thread:    t.Key.Thread,
		Run:       t.State.Run(),
		Number:    t.State.Iteration,
	}
}

// Unfinished passes the records after the boundary, which belong to an incomplete answer,
// through a sequence machine and to each, which may be nil. It returns the machine as
// the run's owner left it.
func (rd Reader) Unfinished(ctx context.Context, t *Thread, each func(agui.Event)) (agui.Sequencer, error) {
	var seq agui.Sequencer
	if _, err := seq.Next(agui.RunStarted{ThreadID: t.Key.Thread, RunID: t.State.Run()}); err != nil {
		return seq, err
	}
	_, _ = seq.Next(agui.StateRef{}) // it may always come, and predictions follow a state
	for _, step := range t.State.Steps {
		if _, err := seq.Next(agui.StepStarted{StepName: step}); err != nil {
			return seq, ReadError(t.Key, fmt.Errorf("the open steps: %w: %w", ErrUnreadable, err))
		}
	}
	after := t.State.Boundary
	for after.Number+1 < t.Head.Next {
		records, err := rd.Store.Records(ctx, t.Key, after, int(min(t.Head.Next-1-after.Number, 1024)))
		if err != nil {
			if errors.Is(err, store.ErrCursor) {
				err = fmt.Errorf("%w: %w", ErrUnreadable, err)
			}
			return seq, ReadError(t.Key, err)
		}
		if len(records) == 0 {
			return seq, ReadError(t.Key, fmt.Errorf("%w: the log ends before its head says", ErrUnreadable))
		}
		for _, rec := range records {
			after = rec.Cursor
			if _, isRef := agui.RefOf(rec.Data); isRef {
				continue
			}
			ev, err := agui.DecodeEvent(rec.Data)
			if err == nil {
				_, err = seq.Next(ev)
			}
			if err != nil {
				return seq, ReadError(t.Key, fmt.Errorf("record %s: %w: %w", rec.Cursor, ErrUnreadable, err))
			}
			if each != nil {
				each(ev)
			}
		}
	}
	return seq, nil
}
