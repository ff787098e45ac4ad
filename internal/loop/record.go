package loop

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
)

// Activities that hooks and tools record, and the history as they see it. Hooks and tools
// may run on other goroutines than the run's, which alone may add to the history, so what
// they record waits until the run's goroutine takes it: before a model call, between two
// deltas while nothing of the answer was shown, after the answer, and when the iteration
// or the run ends. Within a shown answer the history cannot grow, because what was shown
// may still be taken back.

// record is what the goroutines of a run share of its history.
type record struct {
	mu      sync.Mutex
	waiting []holdfast.Activity
	closed  bool
	// models are the messages that models may be shown, and all are these and the
	// activities; nil while there are none.
	models, all []holdfast.Message
}

// add implements [holdfast.Record]. For a tool that outlives its run it returns an error.
func (r *record) add(_ context.Context, a holdfast.Activity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return journal.ErrClosed
	}
	r.waiting = append(r.waiting, a)
	return nil
}

// take returns what was recorded since the last call.
func (r *record) take(last bool) []holdfast.Activity {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.waiting
	r.waiting, r.closed = nil, r.closed || last
	return taken
}

// grow notes that the history has another message; models has it too, unless it is an
// activity.
func (r *record) grow(models []holdfast.Message, m *holdfast.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil && m.Role == holdfast.RoleActivity {
		r.all = slices.Clone(models)
	}
	if r.all != nil || m.Role == holdfast.RoleActivity {
		r.all = append(r.all, *m)
	}
	r.models = models
}

// history implements [holdfast.HistoryFrom].
func (r *record) history() []holdfast.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all != nil {
		return slices.Clip(r.all)
	}
	return slices.Clip(r.models)
}

// activities returns the activities that were recorded since the last call, as messages and
// as the events that show them. After the last time nothing can be recorded.
func (r *run) activities(last bool) (messages []agui.Message, events []agui.Event) {
	for _, a := range r.record.take(last) {
		m := agui.FromDomain(holdfast.Message{ID: r.host.cfg.NewID("msg"), Role: holdfast.RoleActivity, Activity: &a})
		shown := agui.ActivitySnapshot{MessageID: m.ID, ActivityType: m.ActivityType, Content: m.Content}
		shown.Timestamp = r.now()
		messages, events = append(messages, m), append(events, shown)
	}
	return messages, events
}

// addRecorded adds the activities that were recorded to the history. It is no progress: a
// run whose process dies after it each time must end.
func (r *run) addRecorded() error {
	messages, events := r.activities(false)
	if len(messages) == 0 {
		return nil
	}
	return r.grow(messages, events, journal.AtOnce, nil)
}
