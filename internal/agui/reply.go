package agui

// The carriers of events to clients: frames, the streams that are made of them, and pages of a
// run's log.

import (
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// Frame is the content of one Server-Sent Event. Without an ID it is not a record of
// the log, but part of a prelude or a notice.
type Frame struct {
	ID   string
	Data []byte
	// Framed means that Data has whole Server-Sent Events, with their ids.
	Framed bool
	// Pieces, if set, has the event instead of Data, in pieces that are made as they are
	// sent. After an error the event cannot be completed.
	Pieces iter.Seq2[[]byte, error]
	// Held is what Pieces holds in memory until it is sent, in bytes.
	Held int64
}

// HeldBy returns what frames hold in memory until they are sent, in bytes.
func HeldBy(frames []Frame) (bytes int64) {
	for i := range frames {
		bytes += int64(len(frames[i].Data)) + frames[i].Held
	}
	return bytes
}

// Reply is a stream to send. Frames yields the available frames in batches; an empty
// batch means that there was nothing to send for a while. After an error it yields
// nothing more.
type Reply struct {
	ThreadID string
	RunID    string
	Frames   iter.Seq2[[]Frame, error]
	// Held is what the first frames hold in memory, before they are asked for.
	Held int64
	// Notice, if set, has the frames that say that the stream ends before its run does, because
	// of the error; by default they are those of a RUN_ERROR.
	Notice func(*holdfast.Error) []Frame
	// Owner names the process that runs the run; empty if it has ended, or is stored nowhere.
	Owner string
	// Side means that the run is stored nowhere: nobody can come back for what they miss.
	Side bool
}

// Cut returns the frames that say that the stream ends before its run does.
func (r *Reply) Cut(e *holdfast.Error) []Frame {
	if r.Notice != nil {
		return r.Notice(e)
	}
	return []Frame{{Data: Append(nil, NewRunError(e))}}
}

// Whole is Frames with each event in one piece.
func (r *Reply) Whole() iter.Seq2[[]Frame, error] {
	return func(yield func([]Frame, error) bool) {
		for frames, err := range r.Frames {
			for i := range frames {
				if frames[i].Pieces == nil {
					continue
				}
				for piece, broken := range frames[i].Pieces {
					if broken != nil {
						yield(nil, broken)
						return
					}
					frames[i].Data = append(frames[i].Data, piece...)
				}
				frames[i].Pieces = nil
			}
			if !yield(frames, err) {
				return
			}
		}
	}
}

// Page is a part of a run's log, as it is stored now.
type Page struct {
	// Frames yields the page's frames in batches, each with the id of its record. After an
	// error it yields nothing more.
	Frames iter.Seq2[[]Frame, error]
	// Next is the cursor of the page's last record, if the log has more; empty otherwise.
	Next string
	// Ended means that the run has ended and nothing comes after the page.
	Ended bool
}
