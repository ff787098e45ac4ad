package owner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The calls that have happened on the branches that a new one leaves behind: on the one that
// the thread comes from, and on each that was left earlier and begins where the new one does.
// A charge that was made two branches ago is as real as one of the last.

// leaving goes through the messages that are not on the new branch, parents first.
type leaving struct {
	*beginning
	old      *thread.History
	messages map[string]*left
	// from are the messages of the new branch after which others begin, or began: the words
	// that are answered now, and what they follow, which other words have followed too.
	from map[string]bool
	// told are the calls that were seen. A branch has results of its own of the calls that
	// another branch has made, so equal ones on different branches are one call.
	told     map[string]bool
	happened []thread.Happened
	results  map[string][]*left // that can be used again, by the hash of their calls
}

// left is a message that is left behind.
type left struct {
	*agui.Message
	parent *left // nil for what follows a message of the new branch
	// below means that it comes after one of those messages.
	below bool
	call  *agui.Function // whose result it is; nil for most
	hash  string         // of that call, if the result can be used again
}

// recordLeft records what the calls of the branches that are left have done.
func (b *beginning) recordLeft(ctx context.Context, old *thread.History) error {
	stored, err := b.read.Store.Messages(ctx, b.p.Key)
	if err != nil {
		return thread.ReadError(b.p.Key, err)
	}
	l := &leaving{
		beginning: b,
		old:       old,
		messages:  map[string]*left{},
		from:      begins(b.r.History.Path),
		told:      map[string]bool{},
		results:   map[string][]*left{},
	}
	for i := range stored {
		m, err := agui.DecodeMessage(stored[i].Data)
		if err != nil {
			return thread.ReadError(b.p.Key, fmt.Errorf("message %s: %w: %w", stored[i].ID, thread.ErrUnreadable, err))
		}
		l.pass(stored[i].Parent, &m)
	}
	parent := ""
	for i := range old.Path { // the results that close calls are not stored yet
		if m := &old.Path[i]; l.messages[m.ID] == nil {
			l.pass(parent, m)
		}
		parent = old.Path[i].ID
	}
	for _, hash := range slices.Sorted(maps.Keys(l.results)) {
		for n := range len(l.results[hash]) - len(b.r.Recorded[hash]) {
			b.keepResult(l.results[hash][n], n)
		}
	}
	b.st.Happened.Note(l.happened)
	return nil
}

// begins returns the user messages that end a path, and the message before them; "" is what
// the first message follows.
func begins(path []agui.Message) map[string]bool {
	from := map[string]bool{}
	for i := len(path) - 1; i >= 0; i-- {
		from[path[i].ID] = true
		if path[i].Role != string(holdfast.RoleUser) {
			return from
		}
	}
	from[""] = true
	return from
}

// pass notes one message, if it is left behind.
func (l *leaving) pass(parent string, m *agui.Message) {
	if has(l.r.History, m.ID) {
		return
	}
	n := &left{Message: m, parent: l.messages[parent]}
	n.below = l.from[parent] || n.parent != nil && n.parent.below
	l.messages[m.ID] = n
	if m.Role != string(holdfast.RoleTool) || !n.below && !has(l.old, m.ID) || thread.MarkOf(m).NotRun {
		return
	}
	if n.call = n.made(); n.call == nil || !l.p.repeatsMatter(n.call.Name) {
		return
	}
	h := thread.Happened{Tool: n.call.Name, Arguments: n.call.Arguments, Message: m.ID}
	which := m.ToolCallID
	if text := thread.TextOf(m.Content); thread.RanToItsEnd(text) && !m.Imported() {
		n.hash, h.Result = thread.CallHash(n.call.Name, n.call.Arguments), text
		which = fmt.Sprint(n.equals(), " ", n.hash)
	}
	if l.told[which] {
		return
	}
	l.told[which] = true
	l.happened = append(l.happened, h)
	if n.hash != "" {
		l.results[n.hash] = append(l.results[n.hash], n)
	}
}

// made returns the call that the result is of; nil if it is not there.
func (n *left) made() *agui.Function {
	for p := n.parent; p != nil; p = p.parent {
		for i := range p.ToolCalls {
			if p.ToolCalls[i].ID == n.ToolCallID {
				return &p.ToolCalls[i].Function
			}
		}
	}
	return nil
}

// equals counts the results of equal calls on the message's own branch up to it.
func (n *left) equals() (count int) {
	for p := n; p != nil; p = p.parent {
		if p.hash == n.hash {
			count++
		}
	}
	return count
}

// keepResult records one result, for the first equal call of the new branch.
func (b *beginning) keepResult(n *left, number int) {
	v := store.Value{
		Kind: store.KindReuse,
		ID:   fmt.Sprintf("%s/%020d-%06d", n.hash, b.p.rec.After.Number, number),
		Data: thread.MustJSON(thread.RecordedResult{
			Format:  thread.FormatBefore,
			Tool:    n.call.Name,
			Content: n.Content,
			Failed:  thread.MarkOf(n.Message).Failed,
		}),
	}
	b.c.Put = append(b.c.Put, v)
	if b.r.Recorded == nil {
		b.r.Recorded = map[string][]store.Value{}
	}
	b.r.Recorded[n.hash] = append(b.r.Recorded[n.hash], v)
	b.st.Reuse = true
}

// repeatsMatter reports whether the agent's tool of that name is one that the server does
// not start twice by itself.
func (p *plan) repeatsMatter(name string) bool {
	return loop.NeverTwice(p.box.Spec(name).Effect)
}
