package decide

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Clients do not send what is new; they send what they show. Official clients resend the
// whole history, after a cut with half a message in it. Before a request is decided,
// this file compares the list with the thread's history and finds what is new, where it
// attaches, and whether the client's list differs so much that its run must begin with a
// snapshot. The server's history is the truth.

// Compared is what came of comparing an input's messages with the history.
type Compared struct {
	// Users are the new user messages. For a thread without history they are all imported
	// messages, in order.
	Users []agui.Message
	// Results are the new results of open frontend calls.
	Results []agui.Message
	// Instructions are the system and developer messages before the first user
	// message. They belong to the run, not to the history.
	Instructions []agui.Message
	// Parent is the id of the message that the new ones follow.
	Parent string
	// Resync means that the client's list differs from the history, so the run begins with
	// a snapshot.
	Resync bool
	// Reorder means that the client lacks messages before others that it shows. It would
	// append them, so its list is emptied first.
	Reorder bool
	// Stands is the id of the message up to which the client has everything, and beyond which
	// it shows nothing of the thread; empty if that is not known.
	Stands string
	// ShowsCompletion means that the client shows a message of the assistant.
	ShowsCompletion bool
	// Regenerate means that, by the branch flag, the thread goes back to Parent and the
	// agent answers it again.
	Regenerate bool
	// Switch is the message of another branch that the client's list goes on from, if the
	// branch flag lets the thread go back to it; empty for most.
	Switch string
	// Retry means that nothing is new and that the list ends where the newest answer
	// begins: with a user message or a result, and with nothing of what follows it. While
	// the run of that answer is unfinished, this is the request that began it, sent again.
	Retry bool
	// Diverged is the error if the branch flag is not set; nil if the list continues
	// the history.
	Diverged *holdfast.Error
	// Err is the error in any case; nil if there is none.
	Err *holdfast.Error

	// edited are the ids that the client has for those of Users that have none here, in order.
	edited []string
}

// hasNew reports whether the client sent anything to run with.
func (c *Compared) hasNew() bool { return len(c.Users)+len(c.Results) > 0 }

// Compare applies rules 2 and 3 of the design. On a thread with history only user
// messages and results of open frontend calls can be new; anything else that the client
// shows is dropped. h may be nil for a thread without history, into which the whole list
// is imported. pending are the ids of the open frontend calls, and branch is the
// request's flag. With whole, new messages without any known one do not follow the
// history: the person has edited the first message. since is the id of a message up to which
// the client has everything; empty if it does not say.
func Compare(h *thread.History, pending []string, sent []agui.Message, branch, whole bool, since string) Compared {
	var c Compared
	for len(sent) > 0 && (sent[0].Role == string(holdfast.RoleSystem) ||
		sent[0].Role == string(holdfast.RoleDeveloper)) {
		c.Instructions = append(c.Instructions, sent[0])
		sent = sent[1:]
	}
	if h == nil || len(h.Path) == 0 {
		if since != "" && slices.Contains(ids(sent), since) {
			c.Err = errNothingBefore(since) // the rest of the client's list would be lost
			return c
		}
		c.importAll(sent)
		c.Resync = c.Resync || since != ""
		return c
	}
	w := walk{
		Compared: &c,
		history:  h,
		pending:  pending,
		common:   -1,
		last:     -1,
		shown:    make([]bool, len(h.Path)+1),
	}
	w.stands(since, sent)
	for _, m := range sent {
		if w.take(m); c.Err != nil {
			return c
		}
	}
	if w.waits(sent) {
		w.dropped, w.Reorder = true, w.hasNew()
	}
	w.place(branch, whole)
	return c
}

// walk goes through what a client sent, message by message.
type walk struct {
	*Compared
	history *thread.History
	pending []string
	// shown are the places in the path of the messages that the client shows.
	shown []bool
	// common is the index in the path of the last message that the client shows
	// unchanged, before anything of its own.
	common  int
	differs bool   // a user message is not the one on the path
	tip     string // id of the last message of the thread that the client shows
	astray  bool   // the messages that the client shows are no path of the tree
	dropped bool   // something that the client shows is not in the history
	last    int    // place of the last message of the list, -1 if it is not on the path
	known   bool   // the client shows a message of the thread
	stood   bool   // the client has said where it stands
}

// take sorts one message: known, on another branch, new, or to be dropped.
func (w *walk) take(m agui.Message) {
	if m.Role == string(holdfast.RoleAssistant) {
		w.ShowsCompletion = true
	}
	i, ok := w.history.Index[m.ID]
	if m.Role != string(holdfast.RoleActivity) && !(ok && thread.Failed(&w.history.Path[i])) {
		w.last = -1
	}
	if ok {
		w.takeKnown(i, m)
		return
	}
	if role, ok := w.history.Elsewhere[m.ID]; ok {
		w.takeElsewhere(role, m)
		return
	}
	switch {
	case w.history.Queued[m.ID]:
		w.known = true
	case m.Role == string(holdfast.RoleUser):
		w.Users = append(w.Users, m)
	case m.Role == string(holdfast.RoleTool) && slices.Contains(w.pending, m.ToolCallID) && !w.hasResult(m.ToolCallID):
		w.Results = append(w.Results, m)
	case m.Role == string(holdfast.RoleActivity):
		// Activities are the frontend's own; their absence is no difference.
	default:
		w.dropped = true
	}
}

// takeKnown is for a message whose id is at place i of the path.
func (w *walk) takeKnown(i int, m agui.Message) {
	ours := &w.history.Path[i]
	if ours.Role != m.Role {
		w.Err = errRoleChanged(m.ID, ours.Role, m.Role)
		return
	}
	w.known = true
	w.shown[i] = true
	if m.Role == string(holdfast.RoleActivity) {
		return // most clients keep activities to themselves
	}
	same := sameMessage(ours, &m)
	if thread.Failed(ours) { // the conversation stands where it stood before
		w.dropped = w.dropped || !same
		return
	}
	w.last = i
	w.astray = w.astray || w.hasNew()
	w.tip = m.ID
	if m.Role == string(holdfast.RoleUser) && !same {
		w.differs = true
		w.takeEdited(m)
		return
	}
	if !same {
		w.dropped = true
	}
	if !w.hasNew() && i > w.common {
		w.common = i
	}
}

// takeElsewhere is for a message of another branch. An assistant's is left over on the
// client's screen; a user's shows that the client is on that branch.
func (w *walk) takeElsewhere(role string, m agui.Message) {
	if role != m.Role {
		w.Err = errRoleChanged(m.ID, role, m.Role)
		return
	}
	if role == string(holdfast.RoleActivity) {
		return
	}
	w.known, w.dropped = true, true
	if m.Role == string(holdfast.RoleUser) && w.rewritten(&m) {
		w.takeRewritten(m)
		return
	}
	w.astray = w.astray || w.hasNew() || !w.follows(m.ID)
	w.tip = m.ID
	if m.Role == string(holdfast.RoleUser) {
		w.differs = true
	}
}

// rewritten reports whether a user message with an id of another branch says something else
// than the message there.
func (w *walk) rewritten(m *agui.Message) bool {
	theirs, err := agui.DecodeMessage(w.history.Said[m.ID])
	return err == nil && !sameMessage(&theirs, m)
}

// takeRewritten is for a message that the person has edited, from a client that has not heard
// of the id that the server has given to the edited one, or to another wording before it.
func (w *walk) takeRewritten(m agui.Message) {
	path, next := w.history.Path, w.common+1
	for next < len(path) && path[next].Role != string(holdfast.RoleUser) {
		next++
	}
	if next < len(path) && !w.differs && !w.hasNew() && sameMessage(&path[next], &m) {
		m.ID = path[next].ID
		w.takeKnown(next, m)
		return
	}
	w.differs = true
	w.takeEdited(m)
}

// takeEdited takes a message that the person has edited. On a branch this is a new message: its id is taken, so the
// server gives it another.
func (w *walk) takeEdited(m agui.Message) {
	w.edited = append(w.edited, m.ID)
	m.ID = ""
	w.Users = append(w.Users, m)
}

// place applies rule 3: it finds where the new messages attach.
func (w *walk) place(branch, whole bool) {
	path := w.history.Path
	lastUser := -1
	for i, m := range path {
		if m.Role == string(holdfast.RoleUser) {
			lastUser = i
		}
	}
	shorter := !w.hasNew() && !w.differs
	w.Retry = shorter && w.last >= max(lastUser, 0) && w.last == w.common && Completable(path[w.last].Role)
	newBeginning := whole && !w.known && w.hasNew()
	atHead := !w.differs && !newBeginning && (!w.known || lastUser < 0 || w.common >= lastUser)
	w.Parent = path[len(path)-1].ID
	waits := w.Reorder
	lacks, between := w.lacks(path)
	w.Resync = w.dropped || w.differs || lacks
	w.Reorder = waits || between
	w.Stands = w.standing()
	if branch && w.switches() {
		return
	}
	if atHead {
		if w.Retry && branch {
			w.Parent, w.Regenerate = path[w.last].ID, true
			w.Resync = w.Resync || w.stood && w.shown[w.last+1] // the answer that it shows is not the thread's now
		}
		return
	}
	if !branch && shorter {
		return
	}
	lastCommon := ""
	if w.common >= 0 {
		lastCommon = path[w.common].ID
	}
	w.Diverged = errHistoryDiverged(lastCommon, ids(path[w.common+1:]))
	if branch {
		w.Parent = lastCommon
		w.Resync = true
		_, between = w.lacks(path[:w.common+1]) // what comes after that is not the thread's now
		w.Reorder = waits || between || w.renamed()
		w.Regenerate = shorter && w.common >= 0 && Completable(path[w.common].Role)
	}
}

// lacks reports whether a message of the path is missing from the client's list, and whether one
// is missing before others that it shows.
func (w *walk) lacks(path []agui.Message) (missing, between bool) {
	for i := range path {
		switch {
		case w.shown[i]:
			between = between || missing
		case !beside(&path[i]):
			missing = true
		}
	}
	return missing, between || missing && w.hasNew()
}

// renamed reports whether a message that the server gives another id comes before other new ones.
func (w *walk) renamed() bool {
	at := slices.IndexFunc(w.Users, func(m agui.Message) bool { return m.ID == "" })
	return at >= 0 && at < len(w.Users)-1
}

// hasResult reports whether a new result of the call was taken already.
func (w *walk) hasResult(call string) bool {
	for _, r := range w.Results {
		if r.ToolCallID == call {
			return true
		}
	}
	return false
}

// Completable reports whether a model may be asked to answer after a message of this role.
func Completable(role string) bool {
	return role == string(holdfast.RoleUser) || role == string(holdfast.RoleTool)
}

// importAll takes the whole list into a thread without history, and repairs it: every
// tool call gets exactly one result, right after its message.
func (c *Compared) importAll(sent []agui.Message) {
	results := map[string][]int{} // by call id, the places of its results
	made := map[string]bool{}
	last := ""
	for i, m := range sent {
		for _, call := range m.ToolCalls {
			made[call.ID] = true
		}
		if m.Role == string(holdfast.RoleTool) {
			if !made[m.ToolCallID] {
				c.Err = errUnknownToolCall(m.ToolCallID)
				return
			}
			results[m.ToolCallID] = append(results[m.ToolCallID], i)
		}
		if m.Role != string(holdfast.RoleActivity) {
			last = m.Role
		}
	}
	if len(sent) > 0 && !Completable(last) {
		c.Err = errNothingToRun()
		return
	}
	for i, m := range sent {
		switch holdfast.Role(m.Role) {
		case holdfast.RoleActivity, holdfast.RoleTool:
		case holdfast.RoleAssistant:
			c.importAssistant(i, sent, results)
		default:
			c.Users = append(c.Users, m)
		}
	}
}

// importAssistant adds the message at place i and the results of its calls; of each call
// the first result that comes after it. A call whose arguments were cut in the middle and
// that has no result never happened.
func (c *Compared) importAssistant(i int, sent []agui.Message, results map[string][]int) {
	m := sent[i]
	var calls []agui.ToolCall
	var answers []agui.Message
	taken := map[string]bool{}
	for _, call := range m.ToolCalls {
		// Messages before this one answer no later one either, so each is looked at once.
		after := results[call.ID]
		for len(after) > 0 && after[0] < i {
			after = after[1:]
		}
		results[call.ID] = after
		switch {
		case taken[call.ID]:
			c.Resync = true
			continue
		case len(after) > 0:
			answers = append(answers, sent[after[0]])
			results[call.ID] = after[1:]
		case json.Valid([]byte(call.Function.Arguments)):
			answers = append(answers, agui.FromDomain(holdfast.Message{Role: holdfast.RoleTool, CallID: call.ID,
				Text: thread.TextNotAnswered}))
			c.Resync = true
		default:
			c.Resync = true
			continue
		}
		taken[call.ID] = true
		calls = append(calls, call)
	}
	m.ToolCalls = calls
	if len(calls) == 0 && len(m.Content) == 0 {
		c.Resync = true
		return
	}
	c.Users = append(append(c.Users, m), answers...)
}

// sameMessage compares what a client shows with what is stored: content and calls.
// Metadata is not compared, because clients merge it.
func sameMessage(a, b *agui.Message) bool {
	if !sameContent(a, b) || len(a.ToolCalls) != len(b.ToolCalls) {
		return false
	}
	for i := range a.ToolCalls {
		if a.ToolCalls[i].ID != b.ToolCalls[i].ID || a.ToolCalls[i].Function != b.ToolCalls[i].Function {
			return false
		}
	}
	return true
}

// sameContent reports whether the contents say the same, however they are written.
func sameContent(a, b *agui.Message) bool {
	return bytes.Equal(a.Content, b.Content) || bytes.Equal(canonicalContent(a), canonicalContent(b))
}

// canonicalContent returns the content as the server would write it; nil if it is empty.
func canonicalContent(m *agui.Message) []byte {
	d, err := m.Domain()
	if err != nil {
		return m.Content
	}
	content := agui.FromDomain(holdfast.Message{ID: "m", Role: d.Role, Text: d.Text, Parts: d.Parts}).Content
	if bytes.Equal(content, []byte(`""`)) {
		return nil
	}
	return content
}

// ids returns the ids of the messages.
func ids(messages []agui.Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.ID
	}
	return out
}
