package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Pages that show the whole conversation: they edit messages, have them answered again, go back
// to other branches, and bring the results of tools of their own. Side runs are theirs too.

// tree returns the thread's history, and those of its other branches, as a page has them that has
// just read the thread.
func (c *client) tree() (path []agui.Message, others [][]agui.Message) {
	head, err := c.world.base.Head(context.Background(), keyOf(c.thread))
	if err != nil {
		return nil, nil
	}
	st, err := thread.DecodeState(head.State)
	if err != nil {
		return nil, nil
	}
	stored, _ := c.world.base.Messages(context.Background(), keyOf(c.thread))
	parents, messages, inner := map[string]string{}, map[string]agui.Message{}, map[string]bool{}
	for _, one := range stored {
		m, err := agui.DecodeMessage(one.Data)
		if err != nil {
			return nil, nil
		}
		parents[one.ID], messages[one.ID], inner[one.Parent] = one.Parent, m, true
	}
	to := func(leaf string) (path []agui.Message) {
		for at := leaf; at != ""; at = parents[at] {
			path = append(path, messages[at])
		}
		slices.Reverse(path)
		return path
	}
	for _, one := range stored {
		if !inner[one.ID] && one.ID != st.Leaf {
			others = append(others, to(one.ID))
		}
	}
	return to(st.Leaf), others
}

// users returns what makes a list that ends with a user message of the thread: the first, or the
// last with -1; and whether that is edited.
func users(which int, edited bool) func(c *client) []agui.Message {
	return func(c *client) []agui.Message {
		path, _ := c.tree()
		var at []int
		for i := range path {
			if path[i].Role == string(holdfast.RoleUser) {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			return nil
		}
		end := at[max(which, 0)]
		if which < 0 {
			end = at[len(at)-1]
		}
		list := slices.Clone(path[:end+1])
		if edited {
			text := c.world.plan.texts[c.sent%len(c.world.plan.texts)] + strings.Repeat("|", c.sent+1)
			list[end].Content, _ = json.Marshal(text)
		}
		return list
	}
}

// elsewhere returns a list that goes on from another branch.
func (c *client) elsewhere() []agui.Message {
	_, others := c.tree()
	if len(others) == 0 {
		return nil
	}
	c.posts++
	return append(others[c.sent%len(others)], agui.FromDomain(holdfast.Message{
		ID: fmt.Sprintf("%s-u%d", c.name, c.posts), Role: holdfast.RoleUser, Text: c.world.plan.texts[0],
	}))
}

// branch posts a list by the policy of pages.
func (c *client) branch(s *server, list func(*client) []agui.Message) {
	messages := list(c)
	in := c.input("")
	in.Messages, in.ForwardedProps = messages, json.RawMessage(`{"holdfast":{"chat":true}}`)
	c.post(s, in)
}

// bring posts the first n results.
func (c *client) bring(s *server, n int) {
	in := c.input("")
	for i, call := range c.page.pending[:min(n, len(c.page.pending))] {
		in.Messages = append(in.Messages, agui.FromDomain(holdfast.Message{
			ID: fmt.Sprintf("%s-p%d", in.RunID, i+1), Role: holdfast.RoleTool, CallID: call, Text: "seen",
		}))
	}
	c.post(s, in)
}

// maxAsides is how many side runs there are.
const maxAsides = 4

// askAside begins a side run.
func (p *schedule) askAside(s *server) {
	w := p.world
	name := fmt.Sprintf("a%d", len(p.asides)+1)
	c := &client{world: w, name: name, thread: aside + name}
	p.asides = append(p.asides, c)
	in := c.input("do suggest")
	in.Side = true
	in.Tools = []agui.Tool{{Name: "suggest", Description: "what to say next"}}
	in.ForwardedProps = json.RawMessage(`{"toolChoice":{"type":"function","function":{"name":"suggest"}}}`)
	c.post(s, in)
}
