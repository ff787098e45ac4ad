package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The end of the road: a watcher gets a run's log as a stream. The handler of a POST is a
// watcher like any other. A stream is a prelude made of committed state, for a watcher
// that may have seen any part, and then the log: from the run's feed while the run lives
// in this process, and otherwise from the one reader that all watchers of the thread share.
// What neither has any more comes from the store. A watcher is a cursor, not a queue, so a
// slow one costs nobody anything. render.go turns records into frames.

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
	tails *journal.Tails
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
	return &watching{
		streams: s,
		key:     key,
		rec:     &lean,
		after:   after,
		viewer:  v,
	}
}

// watching is one stream: a prelude of committed state, then the log after a cursor.
type watching struct {
	*streams
	key     store.ThreadKey
	rec     *thread.Run
	after   store.Cursor
	prelude []agui.Frame
	// feed has the newest records: the run's own while it lives in this process, and
	// otherwise that of reader. Without one, the store is read.
	feed   *journal.Feed
	reader *journal.Tail
	// alone means that no reader begins at the cursor before the store was read.
	alone bool
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
	return &agui.Reply{
		ThreadID: w.key.Thread,
		RunID:    w.rec.ID,
		Held:     agui.HeldBy(w.prelude),
		Frames: func(yield func([]agui.Frame, error) bool) {
			prelude := w.prelude
			w.prelude = nil
			if len(prelude) > 0 && !yield(prelude, nil) {
				return
			}
			if w.ended {
				return
			}
			defer w.leave()
			err := w.tail(ctx, yield)
			if err != nil && ctx.Err() == nil {
				yield(nil, err)
			}
		},
	}
}

// show adds events to the prelude, as frames without ids.
func (w *watching) show(events ...[]byte) {
	for _, data := range events {
		if data, keep := w.dialect.Event(data); keep {
			w.prelude = append(w.prelude, agui.Frame{Data: data})
		}
	}
}

// tail yields the log until the run's last record.
func (w *watching) tail(ctx context.Context, yield func([]agui.Frame, error) bool) error {
	idle := time.NewTimer(w.keepAlive)
	defer idle.Stop()
	for {
		records, more, err := w.next(ctx)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			if goOn, err := w.wait(ctx, more, idle, yield); !goOn {
				return err
			}
			continue
		}
		frames, ended, err := w.render(ctx, records)
		if err != nil {
			return err
		}
		if !yield(frames, nil) || ended {
			return nil
		}
		idle.Reset(w.keepAlive)
	}
}

// wait sleeps until there may be more. It reports false when the stream ends.
func (w *watching) wait(
	ctx context.Context,
	more <-chan struct{},
	idle *time.Timer,
	yield func([]agui.Frame, error) bool,
) (bool, error) {
	select {
	case <-more:
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

// next returns what follows the cursor, or else a channel that is closed when there may be
// more.
func (w *watching) next(ctx context.Context) ([]store.Record, <-chan struct{}, error) {
	for {
		w.choose()
		if w.feed == nil {
			records, err := w.stored(ctx)
			if err != nil || len(records) > 0 {
				return records, nil, err
			}
			if w.choose(); w.feed == nil {
				return nil, nil, nil // the process stops
			}
		}
		records, behind, more := w.feed.After(w.after)
		if behind {
			var err error
			if records, err = w.stored(ctx); err != nil {
				return nil, nil, err
			}
		}
		if len(records) > 0 || more != nil {
			return records, more, nil
		}
		if err := w.left(); err != nil {
			return nil, nil, thread.ReadError(w.key, err)
		}
	}
}

// choose finds out from where the next records come.
func (w *watching) choose() {
	if live := w.live(w.key); live != nil && live != w.feed {
		w.leave()
		w.feed = live
	}
	if w.feed != nil {
		return
	}
	// The place before a run's first record need not be that of a record.
	if w.reader = w.tails.Join(w.key, w.after, !w.alone && w.after != w.rec.After); w.reader != nil {
		w.feed = w.reader.Feed
	}
}

// leave gives up the feed.
func (w *watching) leave() {
	if w.reader != nil {
		w.reader.Leave()
	}
	w.feed, w.reader = nil, nil
}

// left gives up a feed that has ended, and returns the error that it has ended with.
func (w *watching) left() (err error) {
	if w.reader != nil {
		err, w.alone = w.reader.Err(), true
	}
	w.leave()
	return err
}

// stored reads what follows the cursor from the store.
func (w *watching) stored(ctx context.Context) ([]store.Record, error) {
	records, err := w.streams.read.Records(ctx, w.key, w.rec, w.after, journal.Page)
	if errors.Is(err, store.ErrCursor) { // it is not there any more; whoever comes back is told why
		return nil, errStreamCut(w.key.Thread, w.rec.ID).Wrap(err)
	}
	if err != nil {
		return nil, thread.ReadError(w.key, err)
	}
	w.alone = false
	return records, nil
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
	started := agui.RunStarted{
		ThreadID:        t.Key.Thread,
		RunID:           rec.ID,
		ParentRunID:     rec.ParentRunID,
		ProtocolVersion: agui.ProtocolVersion,
	}
	if v.resync != "" {
		started.Metadata = w.metadata(nil)
	}
	w.show(w.echoed(started.AppendJSON(nil)))
	rest := append(thread.RawMessages(assembled.Messages()), t.State.Queued...)
	w.prelude = append(w.prelude, agui.Frame{Pieces: w.messagesSnapshot(ctx, path, rest), Held: heldBy(path)})
	w.show(state)
	w.show(reopen...)
	if !t.State.Running() {
		result, err := s.read.Result(ctx, t)
		if err != nil {
			return nil, err
		}
		w.show(thread.EncodeEvents(outsideNotice(t.State, t.Head.UpdatedAt.UnixMilli()))...)
		w.show(w.echoed(lastEvent(t, rec, result).AppendJSON(nil)))
		w.ended = true
	}
	return w, nil
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
