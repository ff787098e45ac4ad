package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Activities that change while the run goes on, and steps. Tools and hooks run on other
// goroutines than the run's, so a change waits until the run's goroutine takes it: whenever it
// takes what was recorded (record.go), and besides at once while tools run. Each change that is
// taken becomes a message and a record, in one commit.

const (
	// maxActivities is how many activities may be shown for one message of a user.
	maxActivities = 100
	// maxShownChanges is how many changes of an activity an iteration shows one by one. Of the
	// others, only the last ones are shown, when it ends.
	maxShownChanges = 200
	// maxWaitingChanges is how many changes of an activity wait one by one. The last of more
	// takes the place of the one before.
	maxWaitingChanges = 16
)

// activities are those that the goroutines of a run show.
type activities struct {
	mu      sync.Mutex
	known   map[thread.ActivityKey]*shownActivity // since the last message of a user
	waiting []waitingChange
	closed  bool
	// came says that a change waits.
	came chan struct{}
	// byID has those that are in the history. Only the run's goroutine uses it.
	byID map[string]*shownActivity
}

// shownActivity is an activity that may change.
type shownActivity struct {
	key thread.ActivityKey
	// id is that of its message, empty as long as there is none, and content what the history
	// shows. Only the run's goroutine uses them.
	id      string
	content json.RawMessage
	// unread are the changes in the history that content does not have yet.
	unread []thread.ActivityChange
	// waits counts the changes that wait, and taken those of the iteration that do no more.
	waits, taken int
}

// waitingChange is what an activity shows next, or a step that begins or ends.
type waitingChange struct {
	of      *shownActivity
	content json.RawMessage
	step    agui.Event // if there is no activity
}

func (a *activities) begin() {
	a.known, a.byID = map[thread.ActivityKey]*shownActivity{}, map[string]*shownActivity{}
	a.came = make(chan struct{}, 1)
}

// show implements Show of [activity.Run]. For a tool that outlives its run it returns an error.
func (a *activities) show(_ context.Context, c activity.Change) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("show %s: %w", c.Type, journal.ErrClosed)
	}
	key := thread.ActivityKey{Type: c.Type, Call: c.Call, Name: c.Name}
	of := a.known[key]
	switch {
	case of != nil:
	case len(a.known) >= maxActivities:
		return fmt.Errorf("show %s: %w: at most %d can be shown for one message of a user", c.Type,
			activity.ErrTooMany, maxActivities)
	default:
		of = &shownActivity{key: key}
		a.known[key] = of
	}
	a.wait(of, c.Content)
	a.signal()
	return nil
}

// tell has a tool's step begin or end in its place among the changes.
func (a *activities) tell(step agui.Event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return journal.ErrClosed
	}
	a.waiting = append(a.waiting, waitingChange{step: step})
	a.signal()
	return nil
}

// signal says that something waits; the caller holds the lock.
func (a *activities) signal() {
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// wait adds a change to those that wait; the caller holds the lock.
func (a *activities) wait(of *shownActivity, content json.RawMessage) {
	if of.waits < maxWaitingChanges {
		of.waits++
		a.waiting = append(a.waiting, waitingChange{of: of, content: content})
		return
	}
	for i := len(a.waiting) - 1; i >= 0; i-- {
		if a.waiting[i].of == of {
			a.waiting[i].content = content
			return
		}
	}
}

// take returns the changes that waited. At the end of an iteration these are all; after the last
// time nothing can be shown.
func (a *activities) take(end, last bool) (taken []waitingChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = slices.DeleteFunc(a.waiting, func(w waitingChange) bool {
		switch {
		case w.of == nil:
		case !end && w.of.taken >= maxShownChanges:
			return false
		default:
			w.of.waits--
			w.of.taken++
		}
		taken = append(taken, w)
		return true
	})
	if end {
		for _, of := range a.known {
			of.taken = 0
		}
	}
	a.closed = a.closed || last
	return taken
}

// learn notes what a message of the history says about activities. A history that was read is
// followed by apply.
func (a *activities) learn(m *agui.Message) {
	if c, is := thread.ActivityChangeOf(m); is {
		if of := a.byID[c.Of]; of != nil {
			of.unread = append(of.unread, c)
		}
		return
	}
	if key, is := thread.ActivityKeyOf(m); is {
		of := &shownActivity{key: key, id: m.ID, content: m.Content}
		a.known[key], a.byID[m.ID] = of, of
	}
}

// turn forgets the activities, because a user has said something.
func (a *activities) turn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.known)
}

// changes returns the changes that waited, as messages and as the events that show them, with the
// steps among them. It is called as take; id makes ids of messages, and now is for events.
func (a *activities) changes(end, last bool, id func() string, now int64) (messages []agui.Message,
	events []agui.Event) {
	for _, w := range a.take(end, last) {
		if w.of == nil {
			events = append(events, w.step)
			continue
		}
		if m, shown, changed := a.change(w, id, agui.Base{Timestamp: now}); changed {
			messages, events = append(messages, m), append(events, shown)
		}
	}
	return messages, events
}

// change makes a change; false if it changes nothing.
func (a *activities) change(w waitingChange, id func() string, base agui.Base) (agui.Message, agui.Event, bool) {
	of := w.of
	if of.id == "" {
		m := thread.NewActivity(id(), of.key, w.content)
		of.id, of.content = m.ID, w.content
		a.byID[of.id] = of
		base.Metadata = m.Metadata
		return m, agui.ActivitySnapshot{
			Base:         base,
			MessageID:    of.id,
			ActivityType: of.key.Type,
			Content:      w.content,
		}, true
	}
	c, is := thread.NewChange(of.id, of.content, w.content)
	if !is {
		return agui.Message{}, nil, false
	}
	m := c.Message(id(), of.key.Type)
	if of.content = w.content; c.Patch == nil {
		return m, agui.ActivitySnapshot{
			Base:         base,
			MessageID:    of.id,
			ActivityType: of.key.Type,
			Content:      w.content,
			Stored:       m.ID,
		}, true
	}
	return m, agui.ActivityDelta{Base: base, MessageID: of.id, ActivityType: of.key.Type, Patch: c.Patch}, true
}

// apply has the list of messages that hooks see show the activities with their changes, after a
// history was read.
func (a *activities) apply(n *notes) {
	for _, of := range a.byID {
		if len(of.unread) > 0 {
			of.content, of.unread = thread.ApplyActivityChanges(of.content, of.unread), nil
			a.note(n, of.id)
		}
	}
}

// note has that list show an activity as it is after a change.
func (a *activities) note(n *notes, id string) {
	if of := a.byID[id]; of != nil && len(of.unread) == 0 {
		n.change(id, &holdfast.Activity{Type: of.key.Type, Content: of.content})
	}
}
