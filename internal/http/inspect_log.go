package http

import (
	"bufio"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// writeLog writes a page record by record, so that a slow client does not keep it in memory.
// If one cannot be read, cutting the connection is the only way left to show that.
func writeLog(w http.ResponseWriter, r *http.Request, log *slog.Logger, page *agui.Page) {
	out := &jsonLog{out: bufio.NewWriterSize(w, maxBuffer)}
	out.text(`{"records":[`)
	for frames, err := range page.Frames {
		for i := 0; i < len(frames) && err == nil; i++ {
			err = out.record(&frames[i])
		}
		if err != nil {
			if r.Context().Err() == nil {
				log.Warn("answer cut in the middle", "path", r.URL.Path, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
		if out.failed != nil {
			return // the client went away or does not read
		}
	}
	out.text(`],"ended":` + strconv.FormatBool(page.Ended))
	if page.Next != "" {
		out.text(`,"next":` + strconv.Quote(page.Next))
	}
	out.text("}\n")
	_ = out.out.Flush() // an error means that the client went away
}

// jsonLog writes records as the elements of a JSON array.
type jsonLog struct {
	out    *bufio.Writer
	some   bool
	failed error // of the client
}

func (l *jsonLog) text(s string) {
	if l.failed == nil {
		_, l.failed = l.out.WriteString(s)
	}
}

// record writes a frame, whose id is that of its record. The error is that of its content.
func (l *jsonLog) record(f *agui.Frame) error {
	if l.some {
		l.text(",")
	}
	l.some = true
	number, _, _ := strings.Cut(f.ID, "-")
	l.text(`{"cursor":` + strconv.Quote(f.ID) + `,"number":` + number + `,"event":`)
	if f.Pieces == nil {
		l.text(string(f.Data))
	} else {
		for piece, err := range f.Pieces {
			if err != nil {
				return err
			}
			l.text(string(piece))
		}
	}
	l.text("}")
	return nil
}
