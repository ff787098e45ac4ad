package tanstack

import (
	"encoding/json"
	"errors"
	"iter"
)

// Window is a part of a history.
type Window struct {
	from, to int
	// Cursor is the id of its first message, if there are earlier ones; else empty.
	Cursor string
}

// ErrNoMessage means that the history does not have the message.
var ErrNoMessage = errors.New("no such message")

// Before returns the window of up to limit messages before the one with that id; of the last ones, if it is
// empty.
func Before(messages iter.Seq2[[]byte, error], id string, limit int) (Window, error) {
	var ids []string
	for data, err := range messages {
		var m struct {
			ID string `json:"id"`
		}
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			return Window{}, err
		}
		if id != "" && m.ID == id {
			return last(ids, limit), nil
		}
		ids = append(ids, m.ID)
	}
	if id != "" {
		return Window{}, ErrNoMessage
	}
	return last(ids, limit), nil
}

// last returns the window of up to limit messages at the end.
func last(ids []string, limit int) Window {
	w := Window{from: max(len(ids)-limit, 0), to: len(ids)}
	if w.from > 0 {
		w.Cursor = ids[w.from]
	}
	return w
}

// Of returns the messages that are in the window.
func (w Window) Of(messages iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		at := 0
		for m, err := range messages {
			if err == nil && at >= w.to {
				return
			}
			if at++; (err != nil || at > w.from) && !yield(m, err) {
				return
			}
		}
	}
}
