package loop

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// notes is what the goroutines of a run share of its history.
type notes struct {
	mu      sync.Mutex
	waiting []holdfast.Activity
	closed  bool
	// models are the messages that models may be shown, and all are these and the
	// activities; nil while there are none.
	models, all []holdfast.Message
	// room is how many messages the lists have room for at once.
	room int
}

// add implements [holdfast.Record]. For a tool that outlives its run it returns an error.
func (n *notes) add(_ context.Context, a holdfast.Activity) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return journal.ErrClosed
	}
	n.waiting = append(n.waiting, a)
	return nil
}

// any reports whether something was recorded since the last call of take.
func (n *notes) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.waiting) > 0
}

// take returns what was recorded since the last call.
func (n *notes) take(last bool) []holdfast.Activity {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.waiting
	n.waiting, n.closed = nil, n.closed || last
	return taken
}

// grow notes that the history has another message; models has it too, unless it is an
// activity.
func (n *notes) grow(models []holdfast.Message, m *holdfast.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil && m.Role == holdfast.RoleActivity {
		n.all = append(make([]holdfast.Message, 0, max(n.room, len(models)+1)), models...)
	}
	if n.all != nil || m.Role == holdfast.RoleActivity {
		n.all = append(n.all, *m)
	}
	n.models = models
}

// see notes what a model has made of its answer, which models has already.
func (n *notes) see(models []holdfast.Message, made *thread.Media) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all != nil {
		n.all = made.Among(n.all)
	}
	n.models = models
}

// change has the list show an activity as it is now, in another list, because others may read it.
func (n *notes) change(id string, now *holdfast.Activity) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := len(n.all) - 1; i >= 0; i-- {
		if n.all[i].ID == id {
			n.all = slices.Clone(n.all)
			n.all[i].Activity = now
			return
		}
	}
}

// history implements [holdfast.HistoryFrom].
func (n *notes) history() []holdfast.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all != nil {
		return slices.Clip(n.all)
	}
	return slices.Clip(n.models)
}

// remember adds what a model has made to its answer, as models and hooks see it. It reports
// false for any other activity.
func (n *notes) remember(messages *[]holdfast.Message, m *agui.Message) bool {
	media, is := thread.MediaOf(m)
	if is {
		*messages = media.Among(*messages)
		n.see(*messages, &media)
	}
	return is
}
