package aisdk

// The chunks of a UI message stream, as they are written. Strings that come from a log are
// copied as they stand there: they are JSON already, on one line.

import (
	"bytes"
	"strconv"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// chunks are the chunks of a batch of records, one after the other in one text.
type chunks struct {
	text []byte
	ends []ending
	// frames are what is sent of them.
	frames []agui.Frame
}

// ending is where a chunk ends, and the id of the record whose last chunk it is.
type ending struct {
	at int
	id string
}

// reset forgets all chunks, and keeps their memory.
func (c *chunks) reset() {
	c.text, c.ends, c.frames = c.text[:0], c.ends[:0], c.frames[:0]
}

// end ends a chunk.
func (c *chunks) end() { c.ends = append(c.ends, ending{at: len(c.text)}) }

// mark gives the last chunk of a record its id. A record without chunks has none.
func (c *chunks) mark(before int, id string) {
	if len(c.ends) > before {
		c.ends[len(c.ends)-1].id = id
	}
}

// drop forgets the chunks after the first n.
func (c *chunks) drop(n int) {
	if n < len(c.ends) {
		from := 0
		if n > 0 {
			from = c.ends[n-1].at
		}
		c.text, c.ends = c.text[:from], c.ends[:n]
	}
}

// take returns all chunks as frames, which are valid until the next reset.
func (c *chunks) take() []agui.Frame {
	from := 0
	for i := range c.ends {
		end := &c.ends[i]
		c.frames = append(c.frames, agui.Frame{ID: end.id, Data: c.text[from:end.at:end.at]})
		from = end.at
	}
	return c.frames
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
