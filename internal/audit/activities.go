package audit

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The checks of activities that change: that each change follows its activity, and can be applied.

// shownActivity is an activity as it is after a message.
type shownActivity struct {
	after   string // the message's id
	content json.RawMessage
}

// activities checks the changes of activities.
func (a *audit) activities() {
	last := map[string]shownActivity{} // by the id of the activity
	for i := range a.messages {
		id := a.messages[i].ID
		c, is := thread.ActivityChangeOf(&a.tree[id].Message)
		if !is {
			continue
		}
		before := a.changedBefore(id, c.Of)
		if before == "" {
			a.add("activity_unknown", "message %s changes activity %s, which is not before it", id, c.Of)
			continue
		}
		now := last[c.Of]
		if now.after != before { // it is the first change, or another branch
			now.content = a.contentAfter(before, c.Of)
		}
		after, err := c.Apply(now.content)
		if err != nil {
			a.add("activity_damaged", "message %s cannot change activity %s: %v", id, c.Of, err)
			after = now.content
		}
		last[c.Of] = shownActivity{id, after}
	}
}

// changedBefore returns the id of the last message before another one that is an activity or changes it;
// empty if there is none.
func (a *audit) changedBefore(id, activity string) string {
	steps := 0
	for at := a.tree[id].parent; a.tree[at] != nil && steps <= len(a.tree); at = a.tree[at].parent {
		if c, is := thread.ActivityChangeOf(&a.tree[at].Message); at == activity || is && c.Of == activity {
			return at
		}
		steps++
	}
	return ""
}

// contentAfter returns the content of an activity after a message that is it or changes it.
func (a *audit) contentAfter(id, activity string) json.RawMessage {
	var changes []thread.ActivityChange
	for at := id; at != activity && len(changes) <= len(a.tree); at = a.changedBefore(at, activity) {
		if at == "" {
			return nil // it was reported
		}
		c, _ := thread.ActivityChangeOf(&a.tree[at].Message)
		changes = append(changes, c)
	}
	slices.Reverse(changes)
	return thread.ApplyActivityChanges(a.tree[activity].Content, changes)
}
