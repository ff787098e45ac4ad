package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Documents that change: the shared state of a thread, and its activities. Each change that was
// acknowledged is in them, and those who watch have the documents that are stored.

// documents are those of a thread, as they are stored.
type documents struct {
	version string          // of the shared state
	state   json.RawMessage // as it is
	// told is the state after the last record that says something of it, and last the number of that.
	told    json.RawMessage
	last    uint64
	marks   map[string]bool // the members that the state must have
	done    map[string]bool // the calls whose activities must say that they are done
	shows   map[string]*shows
	rewound bool // the thread was taken back, and lacks what came then
}

// shows is an activity.
type shows struct {
	call    string
	content json.RawMessage
}

func (d *documents) init() {
	d.marks, d.done, d.shows = map[string]bool{}, map[string]bool{}, map[string]*shows{}
}

// take takes in what a commit makes of a thread's documents, and returns what is wrong with them. read reads
// a version of the shared state.
func (d *documents) take(c *store.Commit, read func(version string) (json.RawMessage, error)) (wrong []Violation) {
	if st, err := thread.DecodeState(c.State); len(c.State) > 0 && err == nil && st.Shared != d.version {
		d.version = st.Shared
		if d.state, err = read(st.Shared); err != nil {
			wrong = append(wrong, Violation{lostPromise, fmt.Sprintf("the state %s: %v", st.Shared, err)})
		}
	}
	for i := range c.Messages {
		if m, err := agui.DecodeMessage(c.Messages[i].Data); err == nil {
			if err := d.message(&m, c.Expect.ETag == ""); err != nil {
				wrong = append(wrong, Violation{lostPromise, err.Error()})
			}
		}
	}
	ends := false
	for i, data := range c.Records {
		switch agui.TypeOf(data) {
		case agui.TypeStateSnapshot, agui.TypeStateDelta:
			d.told, d.last = d.state, c.Expect.Next+uint64(i)
		case agui.TypeRunFinished, agui.TypeRunError:
			ends = true
		}
	}
	wrong = append(wrong, d.marked()...)
	if ends {
		wrong = append(wrong, d.allShown()...)
	}
	return wrong
}

// lostPromise is what most of them are about.
const lostPromise = "nothing acknowledged is lost"

// message takes in what a message says of a document. The results of others, which a fork has from its
// beginning, say nothing.
func (d *documents) message(m *agui.Message, others bool) error {
	if key, is := thread.ActivityKeyOf(m); is {
		d.shows[m.ID] = &shows{key.Call, m.Content}
	} else if change, is := thread.ActivityChangeOf(m); is && d.shows[change.Of] != nil {
		content, err := change.Apply(d.shows[change.Of].content)
		if err != nil {
			return fmt.Errorf("a change of the activity %s cannot be applied: %w", change.Of, err)
		}
		d.shows[change.Of].content = content
	}
	if m.Role != string(holdfast.RoleTool) || others {
		return nil
	}
	var text string
	_ = json.Unmarshal(m.Content, &text)
	switch text {
	case "note" + doneText:
		d.marks[m.ToolCallID] = true
	case "show" + doneText:
		d.done[m.ToolCallID] = true
	}
	return nil
}

// marked checks that the shared state has each change that was acknowledged, and none that was refused.
func (d *documents) marked() (wrong []Violation) {
	members, err := membersOf(d.state)
	if err != nil {
		return []Violation{{unfitPromise, fmt.Sprintf("the state is %s: %v", d.state, err)}}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] != true {
			wrong = append(wrong, Violation{unfitPromise, fmt.Sprintf("the state is %s", d.state)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.marks)) {
		if members[name] != true && !d.rewound {
			wrong = append(wrong, Violation{lostPromise, fmt.Sprintf("the change %s of the state is", name)})
		}
	}
	return wrong
}

// unfitPromise is that states fit their schema.
const unfitPromise = "a state fits its schema"

// allShown checks, at the end of a run, that the activities of calls that are done say so.
func (d *documents) allShown() (wrong []Violation) {
	for _, call := range slices.Sorted(maps.Keys(d.done)) {
		last := 0.0
		for _, one := range d.shows {
			var said activity.Progress
			if one.call == call && json.Unmarshal(one.content, &said) == nil {
				last = max(last, said.Done)
			}
		}
		if last < 2 && !d.rewound {
			wrong = append(wrong, Violation{lostPromise, fmt.Sprintf("the last change of the activity of %s is", call)})
		}
	}
	return wrong
}
