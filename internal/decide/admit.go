package decide

import (
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The agent chooses what a client may bring besides the words of its user. Compare has found
// what is new; here what the agent does not take is left out, media that it must not be sent
// are refused, and what is left of a history is marked, because this server has not produced
// it.

// Admit applies the agent's policy to what the client brings. On a thread without history
// the messages may be a whole one; on any other only its user's messages and the results
// of frontend calls are left by now.
func (c *Compared) Admit(p *holdfast.ClientPolicy) {
	if c.Err != nil {
		return
	}
	brought := len(c.Users)
	c.Users = taken(c.Users, p)
	if len(c.Users) < brought {
		c.Resync = true // the client shows what the thread does not have
		if !c.hasNew() {
			c.Err = errNothingTaken(p.Import)
			return
		}
	}
	mark(c.Users)
	mark(c.Results)
	edited := c.edited
	for _, list := range [][]agui.Message{c.Users, c.Results} {
		for i := range list {
			id := list[i].ID
			if id == "" && len(edited) > 0 {
				id, edited = edited[0], edited[1:]
			}
			if c.Err = checkMedia(&list[i], id, p); c.Err != nil {
				return
			}
		}
	}
}

// taken returns the messages that the agent takes.
func taken(messages []agui.Message, p *holdfast.ClientPolicy) []agui.Message {
	switch p.Import {
	case thread.ImportUsers:
		return slices.DeleteFunc(messages, func(m agui.Message) bool { return m.Role != string(holdfast.RoleUser) })
	case thread.ImportNone:
		first := len(messages)
		for first > 0 && messages[first-1].Role == string(holdfast.RoleUser) {
			first--
		}
		return messages[first:]
	}
	if p.Instructions == thread.ShowNothing {
		return slices.DeleteFunc(messages, func(m agui.Message) bool { return Instructs(holdfast.Role(m.Role)) })
	}
	return messages
}

// Instructs reports whether a message of this role tells the model what to do. In a history
// it is always a client's.
func Instructs(role holdfast.Role) bool {
	return role == holdfast.RoleSystem || role == holdfast.RoleDeveloper
}

// mark marks the messages that are not the user's own words.
func mark(messages []agui.Message) {
	for i := range messages {
		if messages[i].Role != string(holdfast.RoleUser) {
			messages[i].MarkImported()
		}
	}
}
