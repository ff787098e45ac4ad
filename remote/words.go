package remote

import (
	"bytes"
	"unicode/utf8"
)

// Nearly all events of a run are words of the message that is being read, in the form in which encoders
// write them. Those are read without decoding JSON.

// words knows how the events with words of a message begin.
type words struct {
	id     string
	before []byte
}

// after is how such an event ends.
var after = []byte(`"}`)

// learn takes the id of the message whose words came last.
func (w *words) learn(id string) {
	if w.id == id && w.before != nil {
		return
	}
	w.id = id
	w.before = append([]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":`), quoted(id)...)
	w.before = append(w.before, `,"delta":"`...)
}

// read returns the words of an event; false if it is of another form.
func (w *words) read(data []byte) (string, bool) {
	if w.before == nil || len(data) < len(w.before)+len(after) || !bytes.HasPrefix(data, w.before) ||
		!bytes.HasSuffix(data, after) {
		return "", false
	}
	text := data[len(w.before) : len(data)-len(after)]
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
