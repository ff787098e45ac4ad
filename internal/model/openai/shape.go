package openai

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// shape is what stands before and after the text in an event that says nothing
// else. Providers send the same around every piece of an answer, and most events
// are such pieces: one that has the same bytes around a plain string says that
// string, and nothing has to be decoded.
type shape struct {
	before, after []byte
	learned       int
}

// maxLearned bounds how often an answer's shape is learned: some providers send
// something new in each event.
const maxLearned = 3

// text returns the text of an event of this shape.
func (s *shape) text(data []byte) (string, bool) {
	n := len(data) - len(s.before) - len(s.after)
	if n <= 0 || len(s.before) == 0 || !bytes.HasPrefix(data, s.before) || !bytes.HasSuffix(data, s.after) {
		return "", false
	}
	text := data[len(s.before) : len(s.before)+n]
	ascii := true
	for _, b := range text {
		if b < ' ' || b == '"' || b == '\\' {
			return "", false
		}
		ascii = ascii && b < utf8.RuneSelf
	}
	if !ascii && !utf8.Valid(text) {
		return "", false
	}
	return string(text), true
}

// learn takes the shape of an event, if it says nothing but text.
func (s *shape) learn(data []byte, c *chunk) {
	if s.learned >= maxLearned || len(c.Choices) != 1 {
		return
	}
	said := c.Choices[0].Delta.Content
	only := choice{Delta: piece{Content: said}}
	if said == "" || c.Usage != nil || c.Error != nil || !reflect.DeepEqual(c.Choices[0], only) {
		return
	}
	s.learned++
	quoted := []byte(`"` + said + `"`)
	at := bytes.Index(data, quoted)
	if at < 0 || bytes.Count(data, quoted) != 1 {
		return
	}
	before, after := data[:at+1], data[at+len(quoted)-1:]
	// Whether that is the place of the text is tried with another one.
	const other = "another text"
	var tried chunk
	want := *c
	want.Choices = []choice{{Delta: piece{Content: other}}}
	if json.Unmarshal(bytes.Join([][]byte{before, after}, []byte(other)), &tried) != nil || !reflect.DeepEqual(tried, want) {
		return
	}
	s.before, s.after = bytes.Clone(before), bytes.Clone(after)
}
