package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// view is how a watcher wants to see a run.
type view struct {
	dialect agui.Dialect
	// echo is the run id the watcher asked under; where it is not the run's own,
	// RUN_STARTED and RUN_FINISHED carry it and name the real run in metadata.
	echo string
	// resync: the watcher's cursor is not in the log, so it starts anew.
	resync bool
}

// follow streams a run's records after the cursor until the run ends.
func (e *Engine) follow(key holdfast.ThreadKey, rec *runRecord, after holdfast.Cursor, v view) *watching {
	return &watching{e: e, key: key, rec: rec, after: after, view: v}
}

// watching is a stream: a prelude built from committed state, then the log.
// A watcher is a cursor; it holds nothing else.
type watching struct {
	e       *Engine
	key     holdfast.ThreadKey
	rec     *runRecord
	after   holdfast.Cursor
	prelude [][]byte
	// feed is the run's, while it lives in this process; nil else.
	feed *feed
	// ended: the prelude is all there is.
	ended bool
	// contents are those of results, by message; see expandResult.
	contents map[string]json.RawMessage
	view
}

// reply makes the stream a reply that ends with ctx.
func (w *watching) reply(ctx context.Context) *agui.Reply {
	return &agui.Reply{ThreadID: w.key.Thread, RunID: w.rec.ID, Frames: func(yield func([]agui.Frame, error) bool) {
		if len(w.prelude) > 0 && !yield(w.preludeFrames(), nil) {
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

func (w *watching) preludeFrames() []agui.Frame {
	frames := make([]agui.Frame, 0, len(w.prelude))
	for _, data := range w.prelude {
		if data, keep := w.dialect.Event(data); keep {
			frames = append(frames, agui.Frame{Data: data})
		}
	}
	return frames
}

// tail yields the log until the run's terminal record. While the run lives in
// this process it reads the run's feed, else the store, which is asked to wake
// it only then.
func (w *watching) tail(ctx context.Context, yield func([]agui.Frame, error) bool) error {
	var wake <-chan struct{}
	idle := time.NewTimer(w.e.cfg.KeepAlive)
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
			idle.Reset(w.e.cfg.KeepAlive)
			continue
		}
		if changed == nil && wake == nil {
			var stop func()
			wake, stop = w.e.cfg.Store.Watch(w.key)
			defer stop()
			continue // what came between the read and the watch is read now
		}
		if goOn, err := w.wait(ctx, changed, wake, idle, yield); !goOn {
			return err
		}
	}
}

// wait sleeps until there may be more. It reports false when the stream ends.
func (w *watching) wait(ctx context.Context, changed, wake <-chan struct{}, idle *time.Timer, yield func([]agui.Frame, error) bool) (bool, error) {
	if changed != nil {
		// The store wakes before the feed has what was committed; the feed, after.
		wake = nil
	}
	select {
	case <-changed:
	case <-wake:
	case <-idle.C:
		idle.Reset(w.e.cfg.KeepAlive)
		return yield(nil, nil), nil
	case <-ctx.Done():
		return false, nil
	case <-w.e.closed:
		return false, errStreamCut(w.key.Thread, w.rec.ID)
	}
	return true, nil
}

// read returns what follows the cursor. changed is the feed's wake-up when the
// run lives here.
func (w *watching) read(ctx context.Context) (records []holdfast.Record, changed <-chan struct{}, err error) {
	if w.feed == nil {
		if r := w.e.local(w.key); r != nil {
			w.feed = r.feed
		}
	}
	if w.feed != nil {
		records, behind, wake := w.feed.after(w.after)
		switch {
		case len(records) > 0 || !behind && wake != nil:
			return records, wake, nil
		case wake == nil:
			w.feed = nil // the run is not here any more, and this was all of it
		default:
			changed = wake
		}
	}
	records, err = w.e.records(ctx, w.key, w.rec, w.after, 256)
	if err != nil {
		return nil, nil, readError(err)
	}
	return records, changed, nil
}

// render turns records into frames, up to the run's end.
func (w *watching) render(ctx context.Context, records []holdfast.Record) (frames []agui.Frame, ended bool, err error) {
	frames = make([]agui.Frame, 0, len(records))
	for i := range records {
		w.after = records[i].Cursor
		data := records[i].Data
		switch agui.TypeOf(data) {
		case agui.TypeMessagesSnapshot, agui.TypeStateSnapshot, agui.TypeToolCallResult:
			if data, err = w.expand(ctx, data); err != nil {
				return nil, false, err
			}
			if data == nil {
				continue
			}
		case agui.TypeRunStarted:
			data = w.echoed(data)
		case agui.TypeRunFinished, agui.TypeRunError:
			data = w.echoed(data)
			ended = true
		}
		if data, keep := w.dialect.Event(data); keep {
			frames = append(frames, agui.Frame{ID: records[i].Cursor.String(), Data: data})
		}
		if ended {
			break
		}
	}
	return frames, ended, nil
}

// expand writes a snapshot out: in the log it is a reference.
func (w *watching) expand(ctx context.Context, data []byte) ([]byte, error) {
	ref, ok := agui.RefOf(data)
	if !ok {
		return data, nil
	}
	if agui.TypeOf(data) == agui.TypeToolCallResult {
		return w.expandResult(ctx, data, ref)
	}
	if agui.TypeOf(data) == agui.TypeStateSnapshot {
		data, err := w.e.stateSnapshot(ctx, w.key, ref)
		if errors.Is(err, holdfast.ErrNotFound) {
			return nil, nil // it was pruned; what follows does not need it
		}
		return data, err
	}
	if ref == "" {
		return agui.AppendMessagesSnapshot(nil, agui.Base{}, nil), nil
	}
	hist, err := w.e.loadHistory(ctx, w.key, ref)
	if errors.Is(err, errHole) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return messagesSnapshot(w.rec, hist.raw, nil), nil
}

// expandResult writes a result out. The messages are read once for a watcher that
// reads the past; one that is up to date gets results as they came.
func (w *watching) expandResult(ctx context.Context, data []byte, message string) ([]byte, error) {
	if w.contents[message] == nil {
		stored, err := w.e.cfg.Store.Messages(ctx, w.key)
		if err != nil {
			return nil, readError(err)
		}
		whole, err := textsOf(stored)
		if err != nil {
			return nil, readError(err)
		}
		w.contents = whole.contents
	}
	content := w.contents[message]
	if content == nil {
		content = mustJSON("(This result was pruned.)")
	}
	return agui.ExpandResult(data, content), nil
}

// messagesSnapshot shows the run's instructions, which the client sent and
// would otherwise lose, then the history, then what is still in the making.
func messagesSnapshot(rec *runRecord, path [][]byte, making []agui.Message) []byte {
	all := make([][]byte, 0, len(rec.Instructions)+len(path)+len(making))
	for _, m := range rec.Instructions {
		all = append(all, m)
	}
	all = append(all, path...)
	for i := range making {
		all = append(all, making[i].AppendJSON(nil))
	}
	return agui.AppendMessagesSnapshot(nil, agui.Base{}, all)
}

func (e *Engine) stateSnapshot(ctx context.Context, key holdfast.ThreadKey, id string) ([]byte, error) {
	state, err := e.shared(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if state == nil {
		state = []byte("{}")
	}
	return agui.AppendStateSnapshot(nil, agui.Base{}, state), nil
}

// echoed gives a watcher under another id that id at the run's two ends.
func (w *watching) echoed(data []byte) []byte {
	if w.echo == "" || w.echo == w.rec.ID {
		return data
	}
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		return data
	}
	switch ev := ev.(type) {
	case agui.RunStarted:
		ev.RunID, ev.Metadata = w.echo, w.metadata()
		return ev.AppendJSON(nil)
	case agui.RunFinished:
		ev.RunID, ev.Metadata = w.echo, w.metadata()
		return ev.AppendJSON(nil)
	}
	return data
}

func (w *watching) metadata() json.RawMessage {
	m := map[string]any{"runId": w.rec.ID}
	if w.resync {
		m["resync"] = true
	}
	return mustJSON(map[string]any{"holdfast": m})
}

// attach shows a thread to a watcher that may hold any part of it: snapshots,
// then START again for every open item, then live. Stock clients digest this
// whatever they have seen before. A thread that does not run is hydrated: the
// stream ends as its last run did.
func (e *Engine) attach(ctx context.Context, t *thread, v view) (*watching, error) {
	rec, err := e.runRecord(ctx, t.key, t.st.Run)
	if err != nil {
		return nil, err
	}
	w := e.follow(t.key, rec, t.last(), v)
	var assembled agui.Assembler
	var reopen [][]byte
	if t.st.Phase == phaseRunning {
		seq, err := e.replay(ctx, t, assembled.Apply)
		if err != nil {
			return nil, err
		}
		reopen = encodeEvents(seq.Reopen())
	}
	state, err := e.stateSnapshot(ctx, t.key, t.st.Shared)
	if err != nil {
		return nil, err
	}
	started := agui.RunStarted{ThreadID: t.key.Thread, RunID: rec.ID, ParentRunID: rec.ParentRunID, ProtocolVersion: agui.ProtocolVersion}
	if v.resync {
		started.Metadata = w.metadata()
	}
	w.prelude = append(w.prelude, w.echoed(started.AppendJSON(nil)), messagesSnapshot(rec, t.hist.raw, assembled.Messages()), state)
	w.prelude = append(w.prelude, reopen...)
	if t.st.Phase != phaseRunning {
		w.prelude = append(w.prelude, w.echoed(t.ending(rec).AppendJSON(nil)))
		w.ended = true
	}
	return w, nil
}

// ending is how a thread that does not run stands, as an event.
func (t *thread) ending(rec *runRecord) agui.Event {
	if t.st.Phase == phaseStopped {
		return agui.RunError{Message: t.st.Text, Code: t.st.Code}
	}
	outcome := &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: t.st.pendingFrontend()}
	if open := t.st.interrupts(); len(open) > 0 {
		outcome = &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: open}
	} else if t.st.Outcome == outcomeCancelled {
		outcome = &agui.Outcome{Type: agui.OutcomeCancelled}
	}
	return agui.RunFinished{ThreadID: t.key.Thread, RunID: rec.ID, Outcome: outcome}
}

func (e *Engine) runRecord(ctx context.Context, key holdfast.ThreadKey, id string) (*runRecord, error) {
	raw, err := e.cfg.Store.Value(ctx, key, holdfast.KindRun, id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, errRunNotFound(key.Thread, id)
	}
	if err != nil {
		return nil, readError(err)
	}
	rec := &runRecord{}
	if err := decodeValue(raw, rec); err != nil {
		return nil, readError(err)
	}
	return rec, nil
}

// Events streams a run after the cursor: exactly the missing suffix, or, where
// the log does not hold the cursor, a new start that says so. A nil reply means
// that the run has ended and nothing is missing.
func (e *Engine) Events(ctx context.Context, who holdfast.Principal, thread, run string, after holdfast.Cursor, d agui.Dialect) (*agui.Reply, error) {
	t, err := e.settled(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	rec, err := e.runRecord(ctx, t.key, run)
	if err != nil {
		return nil, err
	}
	if after.Number < rec.After.Number || after == (holdfast.Cursor{}) {
		after = rec.After
	}
	if _, err := e.records(ctx, t.key, rec, after, 1); err != nil {
		if !errors.Is(err, holdfast.ErrCursor) {
			return nil, readError(err)
		}
		return e.attached(ctx, t, view{dialect: d, resync: true})
	}
	ended, err := e.ended(ctx, t.key, run)
	if err != nil || (ended != nil && after.Number >= ended.Last) {
		return nil, err
	}
	return e.follow(t.key, rec, after, view{dialect: d}).reply(ctx), nil
}

// ended returns the run's outcome; nil while it runs.
func (e *Engine) ended(ctx context.Context, key holdfast.ThreadKey, run string) (*runOutcome, error) {
	raw, err := e.cfg.Store.Value(ctx, key, holdfast.KindOutcome, run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, readError(err)
	}
	var o runOutcome
	if err := decodeValue(raw, &o); err != nil {
		return nil, readError(err)
	}
	return &o, nil
}

// settled reads the head of a thread that must exist, and makes sure that a
// thread which claims to run has a living owner, so that nobody waits for a dead
// one.
func (e *Engine) settled(ctx context.Context, who holdfast.Principal, thread string) (*thread, error) {
	t, err := e.existing(ctx, who, thread)
	if err != nil || t.st.Phase != phaseRunning || e.local(t.key) != nil {
		return t, err
	}
	if err := e.recover(ctx, t.key); err != nil {
		return nil, err
	}
	return e.existing(ctx, who, thread)
}

// Attach streams a thread to a fresh page; see attach.
func (e *Engine) Attach(ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect) (*agui.Reply, error) {
	t, err := e.settled(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	return e.attached(ctx, t, view{dialect: d})
}

// attached is attach for a thread of which only the head has been read.
func (e *Engine) attached(ctx context.Context, t *thread, v view) (*agui.Reply, error) {
	var err error
	if t.hist, err = e.loadHistory(ctx, t.key, t.st.Leaf); err != nil {
		return nil, err
	}
	w, err := e.attach(ctx, t, v)
	if err != nil {
		return nil, err
	}
	return w.reply(ctx), nil
}
