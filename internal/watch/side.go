package watch

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The stream of a run that is stored nowhere: one client watches it, from its beginning to its
// end, and cannot come back.

// Aside returns Streams for a store that holds one side run.
func (s *Streams) Aside(st store.Store) *Streams {
	return &Streams{cfg: s.cfg, read: thread.Reader{Store: st}, snapshot: s.snapshot, reading: s.reading}
}

// Side returns the stream of a side run, which has no cursors. over is called when nobody reads
// it any more, and now is the time in milliseconds since 1970.
func (s *Streams) Side(
	ctx context.Context, feed *journal.Feed, key store.ThreadKey, rec *thread.Run, v Viewer, over func(),
	now func() int64,
) *agui.Reply {
	return &agui.Reply{
		ThreadID: key.Thread,
		RunID:    rec.ID,
		Side:     true,
		Frames: func(yield func([]agui.Frame, error) bool) {
			defer over()
			w := s.Follow(key, rec, store.Cursor{}, v)
			w.feed = feed
			err := w.tailSide(ctx, yield)
			if err == nil || ctx.Err() != nil {
				return
			}
			cut := agui.NewRunError(holdfast.AsError(err))
			cut.Timestamp = now()
			data, _ := w.Dialect.Event(agui.Append(nil, cut)) // every dialect has it
			yield([]agui.Frame{{Data: data}}, nil)
		},
	}
}

// tailSide yields what the run says until its end. The error is that of a run that was cut off.
func (w *Stream) tailSide(ctx context.Context, yield func([]agui.Frame, error) bool) error {
	idle := time.NewTimer(w.streams.cfg.KeepAlive)
	defer idle.Stop()
	for {
		records, behind, more := w.feed.After(w.after)
		if behind {
			var err error
			if records, err = w.stored(ctx); err != nil {
				return err
			}
		}
		if len(records) == 0 {
			if more == nil {
				return errSideCut()
			}
			if goOn, err := w.wait(ctx, more, idle, yield); !goOn {
				return err
			}
			continue
		}
		frames, ended, err := w.render(ctx, records)
		if err != nil {
			return err
		}
		for i := range frames {
			frames[i].ID = "" // nobody can come back for what follows
		}
		if !yield(frames, nil) || ended {
			return nil
		}
		idle.Reset(w.streams.cfg.KeepAlive)
	}
}

func errSideCut() *holdfast.Error {
	return holdfast.Errorf(codes.ShuttingDown,
		"This server is shutting down, and has cut off this run, which is stored nowhere.").
		WithHint("Send the same request again; another server, or this one after its restart, will serve you.")
}
