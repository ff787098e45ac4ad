package watch

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// The stream of a watcher that comes late: the thread as it is, before the log goes on.

// opening shows a thread to a watcher that may have seen any part of it: snapshots, then
// START again for every open item, then the live log. Stock clients handle this whatever
// they have seen before. A thread that does not run is hydrated: the stream ends as its
// last run did. The messages on the path are read while they are sent. (A watcher with Shown is sent
// the answer under way from its start instead of what is open of it.)
func (s *Streams) opening(ctx context.Context, t *thread.Thread, path thread.Path, v Viewer) (*Stream, error) {
	rec, err := s.read.Run(ctx, t.Key, t.State.Run())
	if err != nil {
		return nil, err
	}
	w := s.Follow(t.Key, rec, t.Last(), v)
	var assembled agui.Assembler
	var reopen [][]byte
	switch {
	case !t.State.Running():
	case v.Shown != nil:
		w.after = t.State.Boundary
	default:
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
	w.show(w.echoed(agui.Append(nil, started)))
	rest := append(thread.RawMessages(assembled.Messages()), t.State.Queued...)
	if missing, known := lacked(t, path, v); known {
		w.show(missing...)
	} else {
		w.prelude = append(w.prelude, agui.Frame{Pieces: w.messagesSnapshot(ctx, path, rest), Held: heldBy(path)})
	}
	w.show(state)
	w.show(reopen...)
	if !t.State.Running() {
		result, err := s.read.Result(ctx, t)
		if err != nil {
			return nil, err
		}
		w.show(thread.EncodeEvents(thread.OutsideNotice(t.State.OutsideCalls(), t.Head.UpdatedAt.UnixMilli()))...)
		w.show(w.echoed(agui.Append(nil, lastEvent(t, rec, result))))
		w.ended, w.owner = true, ""
	}
	return w, nil
}

// restatedBytes is the size of the messages that a watcher is told of in events, all of which are
// made before the first one is sent. A snapshot is made while it is sent.
const restatedBytes = 1 << 20

// lacked returns what a watcher lacks that has told where it stands; false if only a snapshot
// can show it.
func lacked(t *thread.Thread, path thread.Path, v Viewer) (events [][]byte, known bool) {
	if v.Stands == "" || v.resync != "" || t.History == nil || t.State.Running() || len(t.State.Queued) > 0 {
		return nil, false
	}
	at, has := t.History.Index[v.Stands]
	if !has || path.Beyond(restatedBytes) > at+1 {
		return nil, false
	}
	said, known := agui.Restated(t.History.Path[at+1:])
	return thread.EncodeEvents(said), known
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
	ev.Metadata = thread.OutsideMetadata(t.State.OutsideCalls())
	return ev
}

// maxSnapshot is the size in bytes above which a snapshot has no more images. The official
// client fails a run at an event of more than 10 MiB.
const maxSnapshot = 9 << 20

// messagesSnapshot shows the run's instructions, which the client sent and would otherwise
// lose, then the history, then what is not in it yet: what is still streaming in, and
// messages that wait for the results of calls. Of images that models have made it has only
// as many of the newest as stock clients take in one event.
func (w *Stream) messagesSnapshot(
	ctx context.Context, path thread.Path, then []json.RawMessage,
) iter.Seq2[[]byte, error] {
	dialect, shown := w.Dialect, w.Shown
	if shown == nil {
		shown = func(history iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] { return history }
	} else {
		dialect = agui.DialectV1 // they are none of AG-UI's
	}
	return agui.MessagesSnapshotPieces(dialect, shown(func(yield func([]byte, error) bool) {
		for _, m := range w.rec.Instructions {
			if !yield(m, nil) {
				return
			}
		}
		beyond, place := path.Shown(path.Beyond(w.streams.snapshot)), 0
		for m, err := range w.streams.read.Along(ctx, w.key, path) {
			if err == nil && place < beyond {
				if short, is := thread.Shortened(m); is {
					m = short
				}
			}
			if place++; !yield(m, err) {
				return
			}
		}
		for _, m := range then {
			if !yield(m, nil) {
				return
			}
		}
	}))
}

// The memory of a stream while it sends the messages of a path: a part that is read at a time,
// and for each step its place and its id.
const (
	pieceBytes = 64 << 10
	stepBytes  = 120
)

// heldBy returns what a path and what is read along it hold in memory, in bytes.
func heldBy(path thread.Path) int64 { return pieceBytes + stepBytes*int64(len(path)) + path.Kept() }
