// Package watch is the end of the road: a watcher gets a run's log as a stream. The handler of
// a POST is a watcher like any other. A stream is a prelude made of committed state, for a
// watcher that may have seen any part, and then the log: from the run's feed while the run
// lives in this process, and otherwise from the one reader that all watchers of the thread
// share. Records that neither has any more come from the store. A watcher is a cursor, not a
// queue, so a slow one costs nobody anything. render.go turns records into frames.
package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Viewer is how a watcher wants to see a run.
type Viewer struct {
	Dialect agui.Dialect
	// Echo is the run id that the watcher asked for. If it is not the run's own,
	// RUN_STARTED and RUN_FINISHED carry it and name the real run in metadata.
	Echo string
	// Stands is the id of the message up to which the watcher has the thread, and beyond which
	// it shows nothing of it; empty if that is not known. It is heeded where no run is under
	// way.
	Stands string
	// Shown makes the messages that snapshots at the start have; nil leaves them as they are. Its watcher
	// does not understand that an open item begins again, so it gets the answer under way from its start.
	Shown agui.Shown
	// resync is why the watcher cannot go on after its cursor, so that it starts over; empty
	// if it has not been there before.
	resync thread.Lost
}

// Streams makes streams of logs. It knows no run, only the feeds of those that live here.
type Streams struct {
	cfg      Config
	read     thread.Reader
	tails    *journal.Tails // nil for the runs of a store that nobody else has
	snapshot int            // see Config.MaxSnapshot
	reading  chan struct{}  // has room for those who read a whole message tree
}

// Config is what Streams needs.
type Config struct {
	Store store.Store
	// Live returns the feed of the thread's run while it lives in this process; nil otherwise.
	Live func(store.ThreadKey) *journal.Feed
	// Closed is closed when streams must end.
	Closed <-chan struct{}
	// Waited is called before a stream goes on whose feed has ended; see loop.Config. It may be nil.
	Waited func(ctx context.Context, thread string)
	// KeepAlive is how long a stream may be silent; then it yields an empty slice of frames.
	KeepAlive time.Duration
	// MaxSnapshot is the size of a MESSAGES_SNAPSHOT, in bytes, above which it has no more
	// images of models; 0 means as much as stock clients take.
	MaxSnapshot int
	// TailBytes bounds what is kept in memory of a run of another process, in bytes.
	TailBytes int
}

// New returns Streams, to be closed.
func New(cfg Config) *Streams {
	return &Streams{
		cfg:      cfg,
		read:     thread.Reader{Store: cfg.Store},
		tails:    journal.NewTails(cfg.Store, cfg.TailBytes),
		snapshot: cmp.Or(cfg.MaxSnapshot, maxSnapshot),
		reading:  make(chan struct{}, maxReading),
	}
}

// Close ends the readers that watchers share. It follows the closing of Config.Closed.
func (s *Streams) Close() { s.tails.Close() }

// over reports whether streams must end.
func (s *Streams) over() bool {
	select {
	case <-s.cfg.Closed:
		return true
	default:
		return false
	}
}

// maxReading is how many streams may read a thread's message tree at a time. Of that they
// keep only the path, but a tree may be large.
const maxReading = 16

// path reads the path to a leaf.
func (s *Streams) path(ctx context.Context, key store.ThreadKey, leaf string) (thread.Path, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.read.Path(ctx, key, leaf)
}

// Follow streams a run's records after the cursor until the run ends.
func (s *Streams) Follow(key store.ThreadKey, rec *thread.Run, after store.Cursor, v Viewer) *Stream {
	// A stream may be open for a long time, and needs little of the run's record.
	lean := *rec
	lean.Tools, lean.Context, lean.ForwardedProps = nil, nil, nil
	return &Stream{
		streams: s,
		key:     key,
		rec:     &lean,
		after:   after,
		owner:   rec.Owner(),
		Viewer:  v,
	}
}

// Begun is Follow for a run that has just begun with that history: what the run's log says of
// it need not be read again.
func (s *Streams) Begun(key store.ThreadKey, rec *thread.Run, with thread.Path, v Viewer) *Stream {
	w := s.Follow(key, rec, rec.After, v)
	w.had = with
	return w
}

// Stream is one stream: a prelude of committed state, then the log after a cursor.
type Stream struct {
	streams *Streams
	key     store.ThreadKey
	rec     *thread.Run
	after   store.Cursor
	prelude []agui.Frame
	owner   string // the process that runs it; empty once it has ended
	// feed has the newest records: the run's own while it lives in this process, and
	// otherwise that of reader. Without one, the store is read.
	feed   *journal.Feed
	reader *journal.Tail
	// alone means that no reader begins at the cursor before the store was read.
	alone bool
	// had is the history with which the run has begun, until it is sent; nil if it is not known
	// here.
	had thread.Path
	// ended means that nothing follows the prelude.
	ended bool
	// contents are the contents of results by message id; see readResults.
	contents map[string]json.RawMessage
	// patches are the changes of the state by the versions that they make, nil for one that was
	// pruned; see readPatches.
	patches map[string][]byte
	Viewer
}

// Reply returns the stream as a reply that ends with ctx; nil for no stream.
func (w *Stream) Reply(ctx context.Context) *agui.Reply {
	if w == nil {
		return nil
	}
	return &agui.Reply{
		ThreadID: w.key.Thread,
		RunID:    w.rec.ID,
		Owner:    w.owner,
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
func (w *Stream) show(events ...[]byte) {
	for _, data := range events {
		if data, keep := w.Dialect.Event(data); keep {
			w.prelude = append(w.prelude, agui.Frame{Data: data})
		}
	}
}

// tail yields the log until the run's last record.
func (w *Stream) tail(ctx context.Context, yield func([]agui.Frame, error) bool) error {
	idle := time.NewTimer(w.streams.cfg.KeepAlive)
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
		idle.Reset(w.streams.cfg.KeepAlive)
	}
}

// wait sleeps until there may be more. It reports false when the stream ends.
func (w *Stream) wait(
	ctx context.Context, more <-chan struct{}, idle *time.Timer, yield func([]agui.Frame, error) bool,
) (bool, error) {
	select {
	case <-more:
	case <-idle.C:
		idle.Reset(w.streams.cfg.KeepAlive)
		return yield(nil, nil), nil
	case <-ctx.Done():
		return false, nil
	case <-w.streams.cfg.Closed:
		select {
		case <-more: // what a run left before the process stops is shown
		default:
			return false, errStreamCut(w.key.Thread, w.rec.ID)
		}
	}
	return true, nil
}

// next returns what follows the cursor, or else a channel that is closed when there may be
// more.
func (w *Stream) next(ctx context.Context) ([]store.Record, <-chan struct{}, error) {
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
		if w.streams.cfg.Waited != nil {
			w.streams.cfg.Waited(ctx, w.key.Thread)
		}
		if w.streams.over() {
			return nil, nil, errStreamCut(w.key.Thread, w.rec.ID)
		}
		if err := w.left(); err != nil {
			return nil, nil, thread.ReadError(w.key, err)
		}
	}
}

// choose finds out from where the next records come.
func (w *Stream) choose() {
	if live := w.streams.cfg.Live(w.key); live != nil && live != w.feed {
		w.leave()
		w.feed = live
	}
	if w.feed != nil {
		return
	}
	// The place before a run's first record need not be that of a record.
	if w.reader = w.streams.tails.Join(w.key, w.after, !w.alone && w.after != w.rec.After); w.reader != nil {
		w.feed = w.reader.Feed
	}
}

// leave gives up the feed.
func (w *Stream) leave() {
	if w.reader != nil {
		w.reader.Leave()
	}
	w.feed, w.reader = nil, nil
}

// left gives up a feed that has ended, and returns the error that it has ended with.
func (w *Stream) left() (err error) {
	if w.reader != nil {
		err, w.alone = w.reader.Err(), true
	}
	w.leave()
	return err
}

// stored reads what follows the cursor from the store.
func (w *Stream) stored(ctx context.Context) ([]store.Record, error) {
	records, err := w.streams.read.Records(ctx, w.key, w.rec, w.after, journal.Page)
	if errors.Is(err, store.ErrCursor) { // it is not there any more; a returning client is told why
		return nil, errStreamCut(w.key.Thread, w.rec.ID).Wrap(err)
	}
	if err != nil {
		return nil, thread.ReadError(w.key, err)
	}
	w.alone = false
	return records, nil
}

// errStreamCut is a notice to one watcher, not a record: the run continues.
func errStreamCut(threadID, run string) *holdfast.Error {
	return holdfast.Errorf(codes.StreamCut,
		"This connection ends before its run does; the run goes on. Attach again with %s, or with GET "+
			"/threads/%s/runs/%s/events and the id of the last event received.", attachPath(threadID), threadID, run)
}

// attachPath returns the request that attaches to a thread.
func attachPath(id string) string { return "GET /threads/" + id + "/stream" }
