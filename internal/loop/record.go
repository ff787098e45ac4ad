package loop

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/store"
)

// Activities that hooks and tools record, and the history as they see it. Hooks and tools
// may run on other goroutines than the run's, which alone may add to the history, so what
// they record waits until the run's goroutine takes it: before a model call, between two
// deltas while nothing of the answer was shown, after the answer, and when the iteration
// or the run ends. Within a shown answer the history cannot grow, because what was shown
// may still be taken back.

// notes is what the goroutines of a run share of its history.
type notes struct {
	mu      sync.Mutex
	waiting []holdfast.Activity
	closed  bool
	// models are the messages that models may be shown, and all are these and the
	// activities; nil while there are none.
	models, all []holdfast.Message
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
		n.all = slices.Clone(models)
	}
	if n.all != nil || m.Role == holdfast.RoleActivity {
		n.all = append(n.all, *m)
	}
	n.models = models
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

// growth is how the history of a run grows. Only the run's goroutine uses it.
type growth struct{ *run }

// plant puts messages behind the leaf, and returns them as they are to be stored. An
// activity is no progress: a run whose process dies after one each time must end.
func (g growth) plant(messages []agui.Message) []store.Message {
	stored := make([]store.Message, len(messages))
	for i, m := range messages {
		stored[i] = store.Message{ID: m.ID, Parent: g.st.Leaf, Data: m.AppendJSON(nil)}
		g.st.Leaf = m.ID
		g.hist.Add(m, stored[i].Data)
		g.remember(&m)
		if m.Role != string(holdfast.RoleActivity) {
			g.st.Advanced()
		}
	}
	g.st.Count = len(g.hist.Path)
	return stored
}

// recorded returns the activities that were recorded since the last call, as messages and
// as the events that show them. After the last time nothing can be recorded.
func (g growth) recorded(last bool) (messages []agui.Message, events []agui.Event) {
	for _, a := range g.notes.take(last) {
		m := agui.FromDomain(holdfast.Message{ID: g.host.cfg.NewID("msg"), Role: holdfast.RoleActivity, Activity: &a})
		shown := agui.ActivitySnapshot{MessageID: m.ID, ActivityType: m.ActivityType, Content: m.Content}
		shown.Timestamp = g.now()
		messages, events = append(messages, m), append(events, shown)
	}
	return messages, events
}

// addRecorded adds the activities that were recorded to the history.
func (g growth) addRecorded() error {
	messages, events := g.recorded(false)
	if len(messages) == 0 {
		return nil
	}
	return g.append(messages, events, journal.AtOnce, nil)
}
