package watch

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// How records of a log become what a watcher is sent: references are written out, and the
// run has the id under which it is watched. Long histories are not read here, but while
// they are sent.

// render turns records into frames, up to the run's end.
func (w *Stream) render(ctx context.Context, records []store.Record) (frames []agui.Frame, ended bool, err error) {
	frames = make([]agui.Frame, 0, len(records))
	for i := range records {
		w.after = records[i].Cursor
		data := records[i].Data
		switch agui.TypeOf(data) {
		case agui.TypeMessagesSnapshot:
			frame, err := w.expandMessages(ctx, records[i])
			if err != nil {
				return nil, false, err
			}
			frames = append(frames, frame...)
			continue
		case agui.TypeActivitySnapshot:
			frames = append(frames, w.expandActivity(ctx, records[i]))
			continue
		case agui.TypeStateSnapshot, agui.TypeStateDelta, agui.TypeToolCallResult:
			if data, err = w.expand(ctx, data, records[i:]); err != nil {
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
		if data, keep := w.Dialect.Event(data); keep {
			frames = append(frames, agui.Frame{ID: records[i].Cursor.String(), Data: data})
		}
		if ended {
			break
		}
	}
	return frames, ended, nil
}

// expandMessages returns the frame of a MESSAGES_SNAPSHOT, with the messages that the log
// refers to; none if they were pruned.
func (w *Stream) expandMessages(ctx context.Context, rec store.Record) ([]agui.Frame, error) {
	frame := agui.Frame{ID: rec.Cursor.String()}
	switch ref, ok := agui.RefOf(rec.Data); {
	case !ok || ref == "": // an empty reference is the snapshot that empties a client's list
		data := rec.Data
		if ok {
			data = agui.AppendMessagesSnapshot(nil, agui.Base{}, nil)
		}
		frame.Data, _ = w.Dialect.Event(data) // every dialect has it
	default:
		path, err := w.pathTo(ctx, ref)
		if errors.Is(err, thread.ErrHole) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		frame.Pieces, frame.Held = w.messagesSnapshot(ctx, path, agui.ThenOf(rec.Data)), heldBy(path)
	}
	return []agui.Frame{frame}, nil
}

// pathTo returns the path to a leaf, with its messages if it is that with which the run has
// begun.
func (w *Stream) pathTo(ctx context.Context, leaf string) (thread.Path, error) {
	had := w.had
	if w.had = nil; had.Leaf() == leaf {
		return had, nil
	}
	return w.streams.path(ctx, w.key, leaf)
}

// expand replaces the reference that a log has for a state, a change of it or a result by its
// content. It returns nil for a state or a change that was pruned; so are those that follow, up to
// a state that was not. The records are those from this one on.
func (w *Stream) expand(ctx context.Context, data []byte, records []store.Record) ([]byte, error) {
	ref, ok := agui.RefOf(data)
	if !ok {
		return data, nil
	}
	switch agui.TypeOf(data) {
	case agui.TypeToolCallResult:
		if w.contents[ref] == nil {
			if err := w.readResults(ctx, records); err != nil {
				return nil, thread.ReadError(w.key, err)
			}
		}
		return agui.ExpandResult(data, w.contents[ref]), nil
	case agui.TypeStateDelta:
		if _, read := w.patches[ref]; !read {
			if err := w.readPatches(ctx, records); err != nil {
				return nil, err
			}
		}
		if w.patches[ref] == nil {
			return nil, nil
		}
		return agui.AppendStateDelta(nil, ref, w.patches[ref]), nil
	}
	data, err := w.streams.read.StateSnapshot(ctx, w.key, ref)
	if errors.Is(err, thread.ErrNoBlob) {
		return nil, nil // it was pruned; what follows does not need it
	}
	return data, err
}

// readPatches reads the changes of the state that the records refer to, all at once.
func (w *Stream) readPatches(ctx context.Context, records []store.Record) error {
	var ids []string
	for i := range records {
		if agui.TypeOf(records[i].Data) != agui.TypeStateDelta {
			continue
		}
		if ref, ok := agui.RefOf(records[i].Data); ok {
			ids = append(ids, ref)
		}
	}
	found, err := w.streams.read.SharedPatches(ctx, w.key, ids)
	if err != nil {
		return err
	}
	w.patches = make(map[string][]byte, len(ids))
	for _, id := range ids {
		w.patches[id] = found[id]
	}
	return nil
}

// readResults reads the results that the records refer to, all at once. A watcher that is
// up to date gets results, and the states that calls leave, from the feed in full.
func (w *Stream) readResults(ctx context.Context, records []store.Record) error {
	var ids []string
	for i := range records {
		if agui.TypeOf(records[i].Data) != agui.TypeToolCallResult {
			continue
		}
		if ref, ok := agui.RefOf(records[i].Data); ok {
			ids = append(ids, ref)
		}
	}
	stored, err := w.streams.read.Store.MessagesOf(ctx, w.key, ids)
	if errors.Is(err, store.ErrNotFound) { // some were pruned
		stored, err = w.streams.read.Store.Messages(ctx, w.key)
	}
	if err != nil {
		return err
	}
	whole, err := thread.TextsOf(stored)
	if err != nil {
		return err
	}
	w.contents = whole.Contents
	for _, id := range ids {
		if w.contents[id] == nil {
			w.contents[id] = thread.MustJSON("(This result was pruned.)")
		}
	}
	return nil
}

// expandActivity returns the frame of an ACTIVITY_SNAPSHOT. If the log refers to its content,
// which may be megabytes, that is read when it is sent. One that was pruned is empty.
func (w *Stream) expandActivity(ctx context.Context, rec store.Record) agui.Frame {
	frame := agui.Frame{ID: rec.Cursor.String()}
	ref, is := agui.RefOf(rec.Data)
	if !is {
		frame.Data, _ = w.Dialect.Event(rec.Data) // every dialect has it
		return frame
	}
	frame.Pieces = func(yield func([]byte, error) bool) {
		content := json.RawMessage("{}")
		found, err := w.streams.read.Store.MessagesOf(ctx, w.key, []string{ref})
		if err == nil {
			var m agui.Message
			m, err = agui.DecodeMessage(found[0].Data)
			content = m.Content
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			yield(nil, thread.ReadError(w.key, err))
			return
		}
		yield(agui.ExpandResult(rec.Data, content), nil)
	}
	return frame
}

// echoed puts the watcher's run id into the run's first and last event, if it watches
// under another id.
func (w *Stream) echoed(data []byte) []byte {
	if w.Echo == "" || w.Echo == w.rec.ID {
		return data
	}
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		return data
	}
	switch ev := ev.(type) {
	case agui.RunStarted:
		ev.RunID, ev.Metadata = w.Echo, w.metadata(ev.Metadata)
		return agui.Append(nil, ev)
	case agui.RunFinished:
		ev.RunID, ev.Metadata = w.Echo, w.metadata(ev.Metadata)
		return agui.Append(nil, ev)
	}
	return data
}

// metadata names the real run, and says whether the stream is a new start, beside what an
// event says itself.
func (w *Stream) metadata(said json.RawMessage) json.RawMessage {
	var m struct {
		Holdfast map[string]any `json:"holdfast"`
	}
	if len(said) > 0 {
		_ = json.Unmarshal(said, &m) // it is our own
	}
	if m.Holdfast == nil {
		m.Holdfast = map[string]any{}
	}
	m.Holdfast["runId"] = w.rec.ID
	if w.resync != "" {
		m.Holdfast["resync"], m.Holdfast["resyncReason"] = true, w.resync
	}
	return thread.MustJSON(m)
}
