package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line, an event, and an answer that does not stream, in bytes. It is
// several times what a server takes of an answer, and little enough to be decoded.
const maxLine = 4 << 20

var errTooLong = errors.New("an event is too long")

// event is the content of one Server-Sent Event.
type event struct {
	data []byte
	// failed: it is an error by its name, or by a field of that name, which llama.cpp
	// sent instead of data until late 2025.
	failed bool
}

// events reads Server-Sent Events (WHATWG HTML, section 9.2). It supports what providers
// use: data lines, several of which may form one event, the name "error", comments, and
// both LF and CRLF.
type events struct {
	r    *bufio.Reader
	line []byte // a line that did not fit the reader's buffer
	now  event  // the event so far
	some bool   // it has at least one line of data
}

// readBuffer, in bytes, is small: the connection has a buffer too, and thousands of
// streams may wait at the same time.
const readBuffer = 512

func newEvents(r io.Reader) *events { return &events{r: bufio.NewReaderSize(r, readBuffer)} }

// next returns the next event that has data; it is valid until the next call. If the
// stream ends within an event, that event counts, because some providers omit the last
// line ending.
func (e *events) next() (event, error) {
	e.reset()
	for {
		line, err := e.readLine()
		if len(line) > 0 {
			if tooLong := e.add(line); tooLong != nil {
				return event{}, tooLong
			}
		}
		if err == nil && len(line) == 0 || errors.Is(err, io.EOF) {
			if data := bytes.TrimSpace(e.now.data); len(data) > 0 {
				return event{data: data, failed: e.now.failed}, nil
			}
			e.reset()
		}
		if err != nil {
			return event{}, err
		}
	}
}

func (e *events) reset() {
	e.now, e.some = event{data: e.now.data[:0]}, false
}

// add takes a line. Other fields mean nothing here.
func (e *events) add(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
	case "error":
		e.now.failed = true
	case "event":
		e.now.failed = string(value) == "error"
		return nil
	default:
		return nil
	}
	if len(e.now.data)+len(value) > maxLine {
		return errTooLong
	}
	if e.some {
		e.now.data = append(e.now.data, '\n')
	}
	e.now.data, e.some = append(e.now.data, value...), true
	return nil
}

// readLine returns a line without its line ending; it is valid until the next call.
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
