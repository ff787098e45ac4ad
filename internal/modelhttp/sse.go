package modelhttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxPiece bounds a line, an event, and an answer that does not stream, in bytes. It is
// several times what a server takes of an answer, has room for the images that a server
// takes of one, and is little enough to be decoded.
const MaxPiece = 12 << 20

var errTooLong = errors.New("an event is too long")

// Event is the content of one Server-Sent Event. Of its name only one matters: providers
// put the type into the data too, and gateways leave the names out.
type Event struct {
	// Data is valid until the next event.
	Data []byte
	// Failed: it is an error by its name, or by a field of that name, which llama.cpp
	// sent instead of data until late 2025.
	Failed bool
}

// events reads Server-Sent Events (WHATWG HTML, section 9.2). It supports what providers
// use: data lines, several of which may form one event, the name "error", comments, and
// both LF and CRLF.
type events struct {
	r    *bufio.Reader
	line []byte // a line that did not fit the reader's buffer
	now  Event  // the event so far
	some bool   // it has at least one line of data
}

// readBuffer, in bytes, is small: the connection has a buffer too, and thousands of
// streams may wait at the same time.
const readBuffer = 512

// next returns the next event that has data; it is valid until the next call. If the
// stream ends within an event, that event counts, because some providers omit the last
// line ending.
func (e *events) next() (Event, error) {
	e.reset()
	for {
		line, err := e.readLine()
		if len(line) > 0 {
			if tooLong := e.add(line); tooLong != nil {
				return Event{}, tooLong
			}
		}
		if err == nil && len(line) == 0 || errors.Is(err, io.EOF) {
			if data := bytes.TrimSpace(e.now.Data); len(data) > 0 {
				return Event{Data: data, Failed: e.now.Failed}, nil
			}
			e.reset()
		}
		if err != nil {
			return Event{}, err
		}
	}
}

func (e *events) reset() {
	e.now, e.some = Event{Data: e.now.Data[:0]}, false
}

// add takes a line. Other fields mean nothing here.
func (e *events) add(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
	case "error":
		e.now.Failed = true
	case "event":
		e.now.Failed = string(value) == "error"
		return nil
	default:
		return nil
	}
	if len(e.now.Data)+len(value) > MaxPiece {
		return errTooLong
	}
	if e.some {
		e.now.Data = append(e.now.Data, '\n')
	}
	e.now.Data, e.some = append(room(e.now.Data, len(value)), value...), true
	return nil
}

// room returns b with room for n more bytes. A long piece grows by doubling up to the bound:
// the smaller steps of append would leave several times as much behind.
func room(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	return append(make([]byte, 0, max(need, min(2*cap(b), MaxPiece))), b...)
}

// readLine returns a line without its line ending; it is valid until the next call.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if err == nil && len(e.line) == 0 {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		if len(e.line)+len(part) > MaxPiece {
			return nil, errTooLong
		}
		e.line = append(room(e.line, len(part)), part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(e.line, "\r\n"), err
		}
	}
}
