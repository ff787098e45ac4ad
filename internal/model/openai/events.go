package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line, and an event, in bytes.
const maxLine = 32 << 20

var errTooLong = errors.New("an event is too long")

// events reads the data of Server-Sent Events (WHATWG HTML, section 9.2). It
// knows the parts that providers use: data lines, several of which are one
// event, comments, and any of the line ends.
type events struct {
	r    *bufio.Reader
	line []byte // a line that did not fit the reader's buffer
	data []byte // the event so far
	some bool   // the event has data
}

// newEvents has a small buffer: the connection has one too, and thousands of
// streams wait at a time.
func newEvents(r io.Reader) *events { return &events{r: bufio.NewReaderSize(r, 512)} }

// next returns the data of the next event; it is valid until the next call. An
// event that was begun when the stream ends counts, because some providers
// leave its last line end out.
func (e *events) next() ([]byte, error) {
	e.data, e.some = e.data[:0], false
	for {
		line, err := e.readLine()
		switch {
		case errors.Is(err, io.EOF) && (len(line) > 0 || e.some):
			if err := e.add(line); err != nil {
				return nil, err
			}
			if e.some {
				return e.data, nil
			}
			return nil, io.EOF
		case err != nil:
			return nil, err
		case len(line) > 0:
			if err := e.add(line); err != nil {
				return nil, err
			}
		case e.some:
			return e.data, nil
		}
	}
}

// add takes a line. Fields other than data mean nothing here.
func (e *events) add(line []byte) error {
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData {
		return nil
	}
	if len(e.data)+len(value) > maxLine {
		return errTooLong
	}
	if e.some {
		e.data = append(e.data, '\n')
	}
	e.data, e.some = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), true
	return nil
}

// readLine returns a line without its end; it is valid until the next call.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if err == nil && len(e.line) == 0 {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		if len(e.line)+len(part) > maxLine {
			return nil, errTooLong
		}
		e.line = append(e.line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(e.line, "\r\n"), err
		}
	}
}
