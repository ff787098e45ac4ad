package openai

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// shape is what is before and after the text in an event that contains nothing else.
// Most events are such pieces of an answer, and providers put the same bytes around each
// of them. If an event has those bytes around a plain string, the string is its text,
// and nothing has to be decoded.
type shape struct {
	before, after []byte
	learned       int
}

// maxLearned bounds how often an answer's shape is learned: some providers send
// something different in each event.
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

// learn takes the shape of an event, if it contains only text.
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
	// Try another text, to verify that this is where the text is.
	const other = "another text"
	var tried chunk
	want := *c
	want.Choices = []choice{{Delta: piece{Content: other}}}
	if json.Unmarshal(bytes.Join([][]byte{before, after}, []byte(other)), &tried) != nil ||
		!reflect.DeepEqual(tried, want) {
		return
	}
	s.before, s.after = bytes.Clone(before), bytes.Clone(after)
}
