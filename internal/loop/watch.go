package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The end of the road: a watcher gets a run's log as a stream. The handler of a POST is a
// watcher like any other. A stream is a prelude made of committed state, for a watcher
// that may have seen any part, and then the log: from the run's feed while the run lives
// in this process, and from the store otherwise. A watcher is a cursor, not a queue, so a
// slow one costs the run nothing. render.go turns records into frames.

// viewer is how a watcher wants to see a run.
type viewer struct {
	dialect agui.Dialect
	// echo is the run id that the watcher asked for. If it is not the run's own,
	// RUN_STARTED and RUN_FINISHED carry it and name the real run in metadata.
	echo string
	// resync is why the watcher cannot go on after its cursor, so that it starts over; empty
	// if it has not been there before.
	resync thread.Lost
}

// streams makes streams of logs. It knows no run, only the feeds of those that live here.
type streams struct {
	read  thread.Reader
	store store.Notifier
	// live returns the feed of the thread's run while it lives in this process.
	live      func(store.ThreadKey) *journal.Feed
	closed    <-chan struct{} // when streams must end
	keepAlive time.Duration
	snapshot  int           // see Config.MaxSnapshot
	reading   chan struct{} // has room for those who read a whole message tree
}

// maxReading is how many streams may read a thread's message tree at a time. Of that they
// keep only the path, but a tree may be large.
const maxReading = 16

// path reads the path to a leaf.
func (s *streams) path(ctx context.Context, key store.ThreadKey, leaf string) (thread.Path, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.read.Path(ctx, key, leaf)
}

// follow streams a run's records after the cursor until the run ends.
func (s *streams) follow(key store.ThreadKey, rec *thread.Run, after store.Cursor, v viewer) *watching {
	// A stream may be open for a long time, and needs little of the run's record.
	lean := *rec
	lean.Tools, lean.Context, lean.ForwardedProps = nil, nil, nil
	return &watching{streams: s, key: key, rec: &lean, after: after, viewer: v}
}

// watching is one stream: a prelude of committed state, then the log after a cursor.
type watching struct {
	*streams
	key     store.ThreadKey
	rec     *thread.Run
	after   store.Cursor
	prelude []agui.Frame
	// feed is the run's while it lives in this process; nil otherwise.
	feed *journal.Feed
	// ended means that nothing follows the prelude.
	ended bool
	// contents are the contents of results by message id; see readResults.
	contents map[string]json.RawMessage
	viewer
}

// reply returns the stream as a reply that ends with ctx; nil for no stream.
func (w *watching) reply(ctx context.Context) *agui.Reply {
	if w == nil {
		return nil
	}
	return &agui.Reply{ThreadID: w.key.Thread, RunID: w.rec.ID, Frames: func(yield func([]agui.Frame, error) bool) {
		prelude := w.prelude
		w.prelude = nil
		if len(prelude) > 0 && !yield(prelude, nil) {
			return
		}
		if w.ended {
			return
		}
		err := w.tail(ctx, yield)
		if err != nil && ctx.Err() == nil {
			yield(nil, err)
		}
	}}
}

// show adds events to the prelude, as frames without ids.
func (w *watching) show(events ...[]byte) {
	for _, data := range events {
		if data, keep := w.dialect.Event(data); keep {
			w.prelude = append(w.prelude, agui.Frame{Data: data})
		}
	}
}

// tail yields the log until the run's last record. While the run lives in this process it
// reads the run's feed; otherwise it reads the store, and only then asks it for wake-ups.
func (w *watching) tail(ctx context.Context, yield func([]agui.Frame, error) bool) error {
	var wake <-chan struct{}
	idle := time.NewTimer(w.keepAlive)
	defer idle.Stop()
	for {
		records, changed, err := w.read(ctx)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			frames, ended, err := w.render(ctx, records)
			if err != nil {
				return err
			}
			if !yield(frames, nil) || ended {
				return nil
			}
			idle.Reset(w.keepAlive)
			continue
		}
		if changed == nil && wake == nil {
			var stop func()
			wake, stop = w.store.Watch(w.key)
			defer stop()
			continue // read again what came before the watch began
		}
		if goOn, err := w.wait(ctx, changed, wake, idle, yield); !goOn {
			return err
		}
	}
}

// wait sleeps until there may be more. It reports false when the stream ends.
func (w *watching) wait(ctx context.Context, changed, wake <-chan struct{}, idle *time.Timer, yield func([]agui.Frame, error) bool) (bool, error) {
	if changed != nil {
		// The store's wake-up comes before the feed has the records; the feed's own comes
		// after.
		wake = nil
	}
	select {
	case <-changed:
	case <-wake:
	case <-idle.C:
		idle.Reset(w.keepAlive)
		return yield(nil, nil), nil
	case <-ctx.Done():
		return false, nil
	case <-w.closed:
		return false, errStreamCut(w.key.Thread, w.rec.ID)
	}
	return true, nil
}

// read returns what follows the cursor. changed is the feed's wake-up if the run lives in
// this process.
func (w *watching) read(ctx context.Context) (records []store.Record, changed <-chan struct{}, err error) {
	if w.feed == nil {
		w.feed = w.live(w.key)
	}
	if w.feed != nil {
		records, behind, wake := w.feed.After(w.after)
		switch {
		case len(records) > 0 || !behind && wake != nil:
			return records, wake, nil
		case wake == nil:
			w.feed = nil // the run has left this process, and the feed has no more
		default:
			changed = wake
		}
	}
	records, err = w.streams.read.Records(ctx, w.key, w.rec, w.after, 256)
	if errors.Is(err, store.ErrCursor) { // it is not there any more; whoever comes back is told why
		return nil, nil, errStreamCut(w.key.Thread, w.rec.ID).Wrap(err)
	}
	if err != nil {
		return nil, nil, thread.ReadError(w.key, err)
	}
	return records, changed, nil
}

// attach shows a thread to a watcher that may have seen any part of it: snapshots, then
// START again for every open item, then the live log. Stock clients handle this whatever
// they have seen before. A thread that does not run is hydrated: the stream ends as its
// last run did. The messages on the path are read while they are sent.
func (s *streams) attach(ctx context.Context, t *thread.Thread, path thread.Path, v viewer) (*watching, error) {
	rec, err := s.read.Run(ctx, t.Key, t.State.Run())
	if err != nil {
		return nil, err
	}
	w := s.follow(t.Key, rec, t.Last(), v)
	var assembled agui.Assembler
	var reopen [][]byte
	if t.State.Running() {
		seq, err := s.read.Unfinished(ctx, t, assembled.Apply)
		if err != nil {
			return nil, err
		}
		reopen = thread.EncodeEvents(seq.Reopen())
	}
	state, err := s.read.StateSnapshot(ctx, t.Key, t.State.Shared)
	if err != nil {
		return nil, err
	}
	started := agui.RunStarted{ThreadID: t.Key.Thread, RunID: rec.ID, ParentRunID: rec.ParentRunID, ProtocolVersion: agui.ProtocolVersion}
	if v.resync != "" {
		started.Metadata = w.metadata(nil)
	}
	w.show(w.echoed(started.AppendJSON(nil)))
	w.prelude = append(w.prelude, agui.Frame{Pieces: w.messagesSnapshot(ctx, path, append(thread.RawMessages(assembled.Messages()), t.State.Queued...))})
	w.show(state)
	w.show(reopen...)
	if !t.State.Running() {
		result, err := s.read.Result(ctx, t)
		if err != nil {
			return nil, err
		}
		w.show(w.echoed(lastEvent(t, rec, result).AppendJSON(nil)))
		w.ended = true
	}
	return w, nil
}

// lastEvent returns the event with which the last run of a thread ended, with its result.
func lastEvent(t *thread.Thread, rec *thread.Run, result json.RawMessage) agui.Event {
	if t.State.Status() == threads.StatusStopped {
		return t.State.Failure()
	}
	outcome := &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: t.State.PendingFrontend()}
	if open := t.State.Interrupts(); len(open) > 0 {
		outcome = &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: open}
	} else if t.State.Outcome() == holdfast.OutcomeCancelled {
		outcome = &agui.Outcome{Type: agui.OutcomeCancelled}
	}
	if outcome.Type != agui.OutcomeSuccess || len(outcome.PendingToolCallIDs) > 0 {
		result = nil
	}
	ev := agui.RunFinished{ThreadID: t.Key.Thread, RunID: rec.ID, Result: result, Outcome: outcome}
	ev.Metadata = outsideMetadata(t.State)
	return ev
}

// streamOf returns the stream that answers a POST; nil if the client has all of it. A run that
// begins is shown whole, whatever the client has seen before.
func (s *streams) streamOf(ctx context.Context, p *plan) (*watching, error) {
	v := viewer{dialect: agui.DialectOf(p.in.ProtocolVersion)}
	switch p.d.Do {
	case decide.FromStart:
		v.echo = p.in.RunID
		return s.after(ctx, p.Thread, p.d.Run, store.Cursor(p.in.After), v)
	case decide.Attach, decide.Hydrate:
		if !p.in.MadeUp { // nobody knows a made-up id
			v.echo = p.in.RunID
		}
		return s.current(ctx, p.Thread, store.Cursor(p.in.After), v)
	}
	v.echo = p.in.RunID
	return s.follow(p.Key, p.rec, p.rec.After, v), nil
}
