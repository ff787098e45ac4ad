package aisdk

// The chunks of a UI message stream, as they are written. Strings that come from a log are
// copied as they stand there: they are JSON already, on one line.

import (
	"bytes"
	"strconv"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// chunks are the chunks of a batch of records, as Server-Sent Events.
type chunks struct {
	// sent has the events, one after the other.
	sent []byte
	// text has the chunks of the record that is being read, and ends where each of them ends.
	text []byte
	ends []int
	// frames are what take returns.
	frames []agui.Frame
}

// An event has a chunk between these.
const (
	idHead   = "id: "
	dataHead = "data: "
	eventEnd = "\n\n"
)

// reset forgets all chunks, and keeps their memory.
func (c *chunks) reset() {
	c.sent = c.sent[:0]
	c.drop()
}

// end ends a chunk.
func (c *chunks) end() { c.ends = append(c.ends, len(c.text)) }

// drop forgets the chunks of the record.
func (c *chunks) drop() { c.text, c.ends = c.text[:0], c.ends[:0] }

// recorded ends a record, of which the last chunk has the id. A record without chunks is not sent.
func (c *chunks) recorded(id string) {
	from := 0
	for i, end := range c.ends {
		if i == len(c.ends)-1 && id != "" {
			c.sent = append(append(append(c.sent, idHead...), id...), '\n')
		}
		c.sent = append(append(append(c.sent, dataHead...), c.text[from:end]...), eventEnd...)
		from = end
	}
	c.drop()
}

// take returns all that is sent, which is valid until the next reset.
func (c *chunks) take() []agui.Frame {
	if c.frames = c.frames[:0]; len(c.sent) > 0 {
		c.frames = append(c.frames, agui.Frame{Data: c.sent, Framed: true})
	}
	return c.frames
}

// goOn sends the chunk of a record that is the next piece of an item that is shown, which nearly
// all records are. It reports false for anything else.
func (c *chunks) goOn(it *item, f *agui.Frame) bool {
	if !bytes.HasPrefix(f.Data, it.event) || f.ID == "" {
		return false
	}
	delta := f.Data[len(it.event):] // and the end of the event, which is that of the chunk, too
	if end := stringEnd(delta); end != len(delta)-1 || delta[end] != '}' {
		return false
	}
	sent := append(append(append(c.sent, idHead...), f.ID...), '\n')
	c.sent = append(append(append(append(sent, dataHead...), it.chunk...), delta...), eventEnd...)
	return true
}

// plain adds a chunk that has only a type.
func (c *chunks) plain(kind string) {
	c.text = append(append(append(c.text, `{"type":"`...), kind...), `"}`...)
	c.end()
}

// piece adds a chunk that is a head and the piece of a text behind it, a JSON string.
func (c *chunks) piece(head, delta []byte) {
	c.text = append(append(append(c.text, head...), delta...), '}')
	c.end()
}

// of adds a chunk about the item with the id, a JSON string.
func (c *chunks) of(kind string, id []byte) {
	c.text = append(append(append(c.text, `{"type":"`...), kind...), `","id":`...)
	c.text = append(append(c.text, id...), '}')
	c.end()
}

// member is a member of a chunk: its name, and its value as JSON.
type member struct {
	name  string
	value []byte
}

// with adds a chunk that has these members; those without a value are left out.
func (c *chunks) with(kind string, members ...member) {
	c.text = append(append(append(c.text, `{"type":"`...), kind...), '"')
	for _, m := range members {
		if m.value == nil {
			continue
		}
		c.text = append(append(append(c.text, `,"`...), m.name...), `":`...)
		c.text = append(c.text, m.value...)
	}
	c.text = append(c.text, '}')
	c.end()
}

// ifTrue is the value of a member that is true or, as false, left out.
func ifTrue(is bool) []byte {
	if !is {
		return nil
	}
	return strconv.AppendBool(nil, true)
}

// stringEnd returns where the JSON string ends that b begins with; -1 if it begins with none.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return -1
	}
	for at := 1; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		escapes := 0
		for b[at-1-escapes] == '\\' {
			escapes++
		}
		at++
		if escapes%2 == 0 {
			return at
		}
	}
}
