package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Activities that hooks and tools record, and the history as they see it. Hooks and tools
// may run on other goroutines than the run's, which alone may add to the history, so what
// they record waits until the run's goroutine takes it: before a model call, between two
// deltas while nothing of the answer was shown, after the answer, and when the iteration
// or the run ends. Within a shown answer the history cannot grow, because what was shown
// may still be taken back.

// growth is how the history of a run grows. Only the run's goroutine uses it.
type growth struct{ r *run }

// plant puts messages behind the leaf, and returns them as they are to be stored. An
// activity is no progress: a run whose process dies after one each time must end.
func (g growth) plant(messages []agui.Message) []store.Message {
	stored := make([]store.Message, len(messages))
	for i := range messages {
		m, data := thread.Stored(messages[i])
		stored[i] = store.Message{ID: m.ID, Parent: g.r.st.Leaf, Data: data}
		g.r.st.Leaf = m.ID
		g.r.hist.Add(m, data)
		g.r.remember(len(g.r.hist.Path) - 1)
		if m.Role != string(holdfast.RoleActivity) {
			g.r.st.Advanced()
		}
	}
	g.r.st.Count = len(g.r.hist.Path)
	return stored
}

// recorded returns the activities that were recorded since the last call, and the changes of
// others, as messages and as the events that show them. After the last time there are no more.
func (g growth) recorded(last bool) (messages []agui.Message, events []agui.Event) {
	for _, a := range g.r.notes.take(last) {
		m := agui.FromDomain(holdfast.Message{ID: g.r.host.Config.NewID("msg"), Role: holdfast.RoleActivity,
			Activity: &a})
		shown := agui.ActivitySnapshot{MessageID: m.ID, ActivityType: m.ActivityType, Content: m.Content}
		shown.Timestamp = g.r.now()
		messages, events = append(messages, m), append(events, shown)
	}
	changes, shown := g.changes(true, last)
	return append(messages, changes...), append(events, shown...)
}

// changes returns the changes of activities that waited. Steps alone need no message, and are told
// here.
func (g growth) changes(end, last bool) (messages []agui.Message, events []agui.Event) {
	id := func() string { return g.r.host.Config.NewID("msg") }
	messages, events = g.r.activities.changes(end, last, id, g.r.now())
	if len(messages) > 0 || len(events) == 0 {
		return messages, events
	}
	_ = g.r.w.Add(events, journal.Soon, nil) // what fails here fails again with whatever is next
	return nil, nil
}

// addChanges adds the changes that waited to the history, while tools run.
func (g growth) addChanges() error {
	messages, events := g.changes(false, false)
	if len(messages) == 0 {
		return nil
	}
	return g.r.append(messages, events, journal.Soon, nil)
}

// addRecorded adds the activities that were recorded to the history.
func (g growth) addRecorded() error {
	messages, events := g.recorded(false)
	if len(messages) == 0 {
		return nil
	}
	return g.r.append(messages, events, journal.AtOnce, nil)
}

// append adds messages to the tree, each following the one before from the leaf on, in one
// commit with the events and with whatever more adds. It does not wait.
func (r *run) append(
	messages []agui.Message, events []agui.Event, u journal.Urgency, more func(c *store.Commit),
) error {
	stored := growth{r}.plant(messages)
	return r.w.Add(events, u, func(c *store.Commit, last store.Cursor) {
		r.st.Boundary, r.st.Steps = last, r.w.OpenSteps()
		c.Messages = append(c.Messages, stored...)
		if more != nil {
			more(c)
		}
		r.saveState(c)
	})
}
