package thread

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
)

// An activity that changes is a message of the history like any other, and each change of it is
// another message behind the leaf: so a path to a leaf shows what the activity showed there,
// also after a rewind and in a fork. All who show the history show the changes in the place of
// the activity.

// ActivityKey tells activities that may change apart, until the next message of a user.
type ActivityKey struct {
	Type string `json:"-"`
	// Call is the id of the call that the activity belongs to; empty for any other.
	Call string `json:"callId,omitempty"`
	// Name is the activity's; empty if it has none.
	Name string `json:"name,omitempty"`
}

// activityMark is what the metadata of an activity, or of a change of one, says about it.
type activityMark struct {
	// Activity is the key of an activity that may change.
	Activity *ActivityKey `json:"activity,omitempty"`
	// Changes is the id of the activity that is changed.
	Changes string `json:"changes,omitempty"`
	// Patch means that the content holds a patch, instead of replacing the activity's.
	Patch bool `json:"patch,omitempty"`
	// Imported means that the message came with a document over HTTP.
	Imported bool `json:"imported,omitempty"`
}

// ImportedActivity returns what the metadata of an activity, or of a change of one, says that came
// with a document over HTTP; nil for any other message. It is only shown.
func ImportedActivity(m *agui.Message) json.RawMessage {
	mark, is := activityMarkOf(m, "")
	if !is || mark.Activity == nil && mark.Changes == "" {
		return nil
	}
	mark.Imported = true
	return MustJSON(mark)
}

// NewActivity returns the message of an activity that may change.
func NewActivity(id string, k ActivityKey, content json.RawMessage) agui.Message {
	return activityMessage(id, k.Type, content, activityMark{Activity: &k})
}

func activityMessage(id, kind string, content json.RawMessage, mark activityMark) agui.Message {
	return agui.Message{
		ID:           id,
		Role:         string(holdfast.RoleActivity),
		ActivityType: kind,
		Content:      content,
		Metadata:     MustJSON(map[string]activityMark{"holdfast": mark}),
	}
}

// ActivityKeyOf returns the key of an activity that may change; false for any other message.
func ActivityKeyOf(m *agui.Message) (ActivityKey, bool) {
	mark, is := activityMarkOf(m, `"activity"`)
	if !is || mark.Activity == nil {
		return ActivityKey{}, false
	}
	k := *mark.Activity
	k.Type = m.ActivityType
	return k, true
}

// activityMarkOf reads the mark of an activity whose metadata contains member.
func activityMarkOf(m *agui.Message, member string) (activityMark, bool) {
	if m.Role != string(holdfast.RoleActivity) || !bytes.Contains(m.Metadata, []byte(member)) {
		return activityMark{}, false
	}
	var said struct {
		Holdfast activityMark `json:"holdfast"`
	}
	err := json.Unmarshal(m.Metadata, &said)
	return said.Holdfast, err == nil
}

// ActivityChange is a change of an activity.
type ActivityChange struct {
	// Of is the id of the activity's message.
	Of string
	// Patch is an RFC 6902 patch of the content; nil if Content replaces it.
	Patch json.RawMessage
	// Content is what replaces it.
	Content json.RawMessage
}

// patchContent is the content of the message of a patch.
type patchContent struct {
	Patch json.RawMessage `json:"patch"`
}

// NewChange returns the change of an activity's content from before to after, as a patch if
// that is shorter; false if both say the same.
func NewChange(of string, before, after json.RawMessage) (ActivityChange, bool) {
	if jsonpatch.Equal(before, after) {
		return ActivityChange{}, false
	}
	whole := ActivityChange{Of: of, Content: after}
	patch, err := jsonpatch.Diff(before, after)
	if err != nil || len(patch) >= len(after) {
		return whole, true
	}
	c := ActivityChange{Of: of, Patch: patch}
	if made, err := c.Apply(before); err != nil || !jsonpatch.Equal(made, after) {
		return whole, true
	}
	return c, true
}

// Message returns the message of the change of an activity of that type.
func (c *ActivityChange) Message(id, kind string) agui.Message {
	mark := activityMark{Changes: c.Of, Patch: c.Patch != nil}
	content := c.Content
	if mark.Patch {
		content = MustJSON(patchContent{c.Patch})
	}
	return activityMessage(id, kind, content, mark)
}

// changesMember is in the stored form of each change, and of few other messages.
const changesMember = `"changes":`

// ActivityChangeOf reads a change; false for any other message.
func ActivityChangeOf(m *agui.Message) (ActivityChange, bool) {
	mark, is := activityMarkOf(m, changesMember)
	if !is || mark.Changes == "" {
		return ActivityChange{}, false
	}
	c := ActivityChange{Of: mark.Changes, Content: m.Content}
	if mark.Patch {
		var said patchContent
		if json.Unmarshal(m.Content, &said) != nil {
			return ActivityChange{}, false
		}
		c.Patch, c.Content = said.Patch, nil
	}
	return c, true
}

// Apply returns the content of the activity after the change.
func (c *ActivityChange) Apply(before json.RawMessage) (json.RawMessage, error) {
	if c.Patch == nil {
		return c.Content, nil
	}
	return applyAll(before, []ActivityChange{*c})
}

// errOperation means that a patch has an operation that none of ours has.
var errOperation = errors.New("the patch has an operation other than add, remove and replace")

// checkPatch returns an error for a patch that is none of ours. The result of one with a copy in it may
// be larger than all that it is made of.
func checkPatch(patch json.RawMessage) error {
	var operations []struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		return err
	}
	for _, o := range operations {
		if o.Op != "add" && o.Op != "remove" && o.Op != "replace" {
			return errOperation
		}
	}
	return nil
}

// ApplyActivityChanges returns the content of an activity after changes. One that cannot be
// applied is left out, as clients do it.
func ApplyActivityChanges(content json.RawMessage, changes []ActivityChange) json.RawMessage {
	for i := len(changes) - 1; i >= 0; i-- {
		if changes[i].Patch == nil {
			content, changes = changes[i].Content, changes[i+1:]
			break
		}
	}
	if after, err := applyAll(content, changes); err == nil {
		return after
	}
	for i := range changes {
		if after, err := changes[i].Apply(content); err == nil {
			content = after
		}
	}
	return content
}

// applyAll applies patches as one, so that the content is read and written once.
func applyAll(content json.RawMessage, changes []ActivityChange) (json.RawMessage, error) {
	patches := make([][]byte, len(changes))
	for i := range changes {
		if err := checkPatch(changes[i].Patch); err != nil {
			return nil, err
		}
		patches[i] = changes[i].Patch
	}
	return jsonpatch.Apply(content, patches...)
}

// changed returns the stored form of an activity after changes, given in theirs.
func changed(stored []byte, changes [][]byte) []byte {
	m, err := agui.DecodeMessage(stored)
	if err != nil {
		return stored
	}
	list := make([]ActivityChange, 0, len(changes))
	for _, data := range changes {
		if by, err := agui.DecodeMessage(data); err == nil {
			if c, is := ActivityChangeOf(&by); is {
				list = append(list, c)
			}
		}
	}
	m.Content = ApplyActivityChanges(m.Content, list)
	return m.AppendJSON(nil)
}

// changeIn returns the id of the activity that a stored message changes; empty for any other
// message.
func changeIn(stored []byte) string {
	if !bytes.Contains(stored, []byte(changesMember)) {
		return ""
	}
	m, err := agui.DecodeMessage(stored)
	if err != nil {
		return ""
	}
	c, _ := ActivityChangeOf(&m)
	return c.Of
}
