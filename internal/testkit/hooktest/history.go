package hooktest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/holdfast-agents/holdfast"
)

// History is the history of a run without a server: the messages that the test sets, and
// the activities that hooks record, each behind the message that was the last one then. An
// activity behind a message that is not there is on another branch.
type History struct {
	mu       sync.Mutex
	messages []holdfast.Message
	recorded map[string][]holdfast.Activity
	// Activities are all that were recorded, each "type content".
	Activities []string
}

// Set sets the messages.
func (h *History) Set(messages []holdfast.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages = messages
}

// Record implements [holdfast.RunContext].Record.
func (h *History) Record(_ context.Context, a holdfast.Activity) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Activities = append(h.Activities, a.Type+" "+string(a.Content))
	h.put(a)
	return nil
}

// Put adds an activity that has been recorded earlier.
func (h *History) Put(activityType, content string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(holdfast.Activity{Type: activityType, Content: json.RawMessage(content)})
}

func (h *History) put(a holdfast.Activity) {
	if h.recorded == nil {
		h.recorded = map[string][]holdfast.Activity{}
	}
	last := ""
	if len(h.messages) > 0 {
		last = h.messages[len(h.messages)-1].ID
	}
	h.recorded[last] = append(h.recorded[last], a)
}

// Messages implements [holdfast.RunContext].History.
func (h *History) Messages() []holdfast.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []holdfast.Message
	for _, m := range h.messages {
		all = append(all, m)
		for _, a := range h.recorded[m.ID] {
			all = append(all, holdfast.Message{ID: fmt.Sprint("activity", len(all)), Role: holdfast.RoleActivity,
				Activity: &a})
		}
	}
	return all
}
