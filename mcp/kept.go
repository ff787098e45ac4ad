package mcp

import (
	"encoding/json"
	"time"
)

// kept is what a call keeps to go on from, also in another process: the server's questions
// and the answers so far, and the handle of a task.
type kept struct {
	// Round counts how often the server has asked for something instead of answering.
	Round int `json:"round,omitempty"`
	// State is the server's own state of the call, which goes back to it as it came.
	State json.RawMessage `json:"state,omitempty"`
	// Questions are the questions of this round, in the order in which they are asked, and
	// Answers what goes back to the server, by the questions' keys.
	Questions []question                 `json:"questions,omitempty"`
	Answers   map[string]json.RawMessage `json:"answers,omitempty"`
	// Sending: the answers of a call that must not be made twice may be on their way.
	Sending bool `json:"sending,omitempty"`
	// Held is the name of the request that the server's process holds open for an answer;
	// empty if none is.
	Held string `json:"held,omitempty"`
	// Task is the handle of the task that the call became; nil if it is none.
	Task *task `json:"task,omitempty"`
}

// task is the handle of a task.
type task struct {
	// ID is the server's id of it.
	ID string `json:"id"`
	// Expires is when the server may forget it; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	// Answered are the keys of the questions whose answers the server has.
	Answered []string `json:"answered,omitempty"`
}

// read reads what the call has kept.
func (k *kept) read(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, k)
}

// question is a question of a server to a person.
type question struct {
	Key     string          `json:"key"`
	Mode    string          `json:"mode,omitempty"`
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema,omitempty"`
	URL     string          `json:"url,omitempty"`
}

// url reports whether the person is sent to a page instead of filling in a form.
func (q *question) url() bool { return q.Mode == "url" }
