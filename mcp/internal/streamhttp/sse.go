package streamhttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// event is one server-sent event.
type event struct {
	id    string
	name  string
	data  []byte
	retry time.Duration
}

// events reads server-sent events, each of at most limit bytes.
type events struct {
	in    *bufio.Reader
	limit int
}

func newEvents(r io.Reader, limit int) *events {
	return &events{in: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// next returns the next event that says something. An event that the end of the stream cuts
// off is no event.
func (e *events) next() (event, error) {
	var ev event
	size, any := 0, false
	for {
		line, err := e.line(&size)
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if any {
				return ev, nil
			}
			size = 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if ev.data != nil {
				ev.data = append(ev.data, '\n')
			}
			ev.data, any = append(ev.data, value...), true
		case "id":
			ev.id, any = string(value), true
		case "event":
			ev.name = string(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				ev.retry, any = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
}

// line returns the next line without its end, and adds its length to size.
func (e *events) line(size *int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		if *size += len(part); *size > e.limit {
			return nil, wire.ErrTooLarge
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
