package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A stored thread as a person reads it: one line of it, or all of it, now or at a
// checkpoint. Of a damaged thread it shows what can be read.

// Summary is a thread in one line.
type Summary struct {
	Key       store.ThreadKey // tenant and id
	User      string          // its owner
	Status    string          // "unreadable" if its head cannot be read
	Iteration int             // that runs, or runs next
	Messages  int             // how many its history has
	Bytes     int64           // that it takes in the store
	UpdatedAt time.Time       // when it was last active
}

// Summarize describes a stored thread in one line. It needs no engine and writes nothing.
// The error is the store's.
func Summarize(ctx context.Context, db store.Reader, key store.ThreadKey) (*Summary, error) {
	head, err := db.Head(ctx, key)
	if thread.Unreadable(err) {
		s := &Summary{Key: key, Status: string(threads.StatusUnreadable)}
		if head != nil {
			s.User, s.UpdatedAt = head.User, head.UpdatedAt
		}
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", key, err)
	}
	size, err := db.Size(ctx, key)
	if err != nil && !thread.Unreadable(err) {
		return nil, fmt.Errorf("read thread %s: %w", key, err)
	}
	s := &Summary{Key: key, User: head.User, Status: string(threads.StatusUnreadable), UpdatedAt: head.UpdatedAt}
	for bytes := range maps.Values(size) {
		s.Bytes += bytes
	}
	if st, err := thread.DecodeState(head.State); err == nil {
		s.Status, s.Iteration, s.Messages = string(st.Status()), st.Iteration, st.Count
	}
	return s, nil
}

// Inspection is a thread as a person can read it.
type Inspection struct {
	Summary
	Owner, ETag string // the process that runs it, if any; what clients are told
	Agent, Run  string // of the running or last run
	// Outcome, Code and Text say how the last run ended.
	Outcome    holdfast.Outcome
	Code, Text string // see Outcome
	// Parent and ParentCheckpoint are what it was forked from.
	Parent, ParentCheckpoint string
	// Shown is the checkpoint that History, State, Middleware and Open belong to; nil for
	// the head.
	Shown   *threads.Checkpoint
	History []InspectedMessage // the first message first
	State   json.RawMessage    // the shared state; nil if there is none
	// Middleware is the middleware's states, without what must not be shown.
	Middleware  json.RawMessage
	Open        []threads.OpenCall     // calls without a result
	Checkpoints []threads.Checkpoint   // the newest last
	Intents     []InspectedIntent      // calls that were about to start
	Pending     []threads.PendingWrite // results that no checkpoint holds
	Runs        []InspectedRun         // in the order in which they started
	Size        map[string]int64       // bytes by kind of data, as the store counts them
	Problems    []Problem              // see Check
}

// InspectedMessage is a message of the history. CallID is the call that a result belongs
// to.
type InspectedMessage struct {
	ID, Role, Text, CallID string
	Calls                  []InspectedCall // that an assistant's message makes
}

// InspectedCall is a call that a message makes. Arguments are as the model wrote them.
type InspectedCall struct{ ID, Tool, Arguments string }

// InspectedIntent is a call that was about to start at that time, and that has no result in
// a checkpoint. Key is its idempotency key.
type InspectedIntent struct {
	CallID, Tool, Key string
	At                time.Time
}

// InspectedRun is a run. One without an Outcome has not ended.
type InspectedRun struct {
	ID, Agent, Revision, Code, Continues string
	Outcome                              holdfast.Outcome
	StartedAt, EndedAt                   time.Time
}

// Inspect describes a stored thread, or what it was at the checkpoint if that is not empty. It
// needs no engine and writes nothing. Unreadable parts of a damaged thread are left out and
// are among its problems. A checkpoint that is not there is a not_found error.
func Inspect(ctx context.Context, db store.Store, key store.ThreadKey, checkpoint string) (*Inspection, error) {
	all, err := readAll(ctx, db, key)
	if err != nil {
		return nil, err
	}
	summary, err := Summarize(ctx, db, key)
	if err != nil {
		return nil, err
	}
	in := &Inspection{
		Summary:  *summary,
		Owner:    all.head.Process,
		ETag:     thread.PublicETag(all.head.ETag),
		Problems: all.check(),
	}
	if in.Size, err = db.Size(ctx, key); err != nil {
		return nil, fmt.Errorf("read thread %s: %w", key, err)
	}
	in.values(all)
	st, err := thread.DecodeState(all.head.State)
	if st != nil {
		in.Agent, in.Run = st.Agent, st.Run()
		in.Outcome, in.Code, in.Text = st.Ended()
		if st.Origin != nil {
			in.Parent, in.ParentCheckpoint = st.Origin.Thread, st.Origin.Checkpoint
		}
	}
	if checkpoint == "" {
		// A negative counter is no reason to hide the rest.
		if err == nil || errors.Is(err, thread.ErrNegative) {
			in.at(all, st)
		}
		return in, nil
	}
	data, err := db.Value(ctx, key, store.KindCheckpoint, checkpoint)
	if errors.Is(err, store.ErrNotFound) {
		return nil, thread.CheckpointNotFound(key.Thread, checkpoint)
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s of thread %s: %w", checkpoint, key, err)
	}
	cp, err := thread.DecodeCheckpoint(data)
	if err != nil {
		return nil, thread.ReadError(key, thread.AtCheckpoint(checkpoint, err))
	}
	shown := cp.Public(key.Thread)
	in.Shown = &shown
	in.at(all, cp.State)
	return in, nil
}

// values describes what belongs to the whole thread.
func (in *Inspection) values(all *everything) {
	for _, v := range all.values[store.KindCheckpoint] {
		if cp, err := thread.DecodeCheckpoint(v.Data); err == nil {
			in.Checkpoints = append(in.Checkpoints, cp.Public(all.key.Thread))
		}
	}
	for _, v := range all.values[store.KindIntent] {
		var i thread.Intent
		if thread.Decode(v.Data, &i) == nil {
			in.Intents = append(in.Intents, InspectedIntent{CallID: v.ID, Tool: i.Tool, Key: i.Key, At: i.At})
		}
	}
	for _, v := range all.values[store.KindPending] {
		var p thread.PendingWrite
		if thread.Decode(v.Data, &p) == nil {
			in.Pending = append(in.Pending, threads.PendingWrite{
				CallID:      p.CallID,
				Tool:        p.Tool,
				Message:     p.Message,
				Failed:      p.Failed,
				Iteration:   p.Iteration,
				ThreadID:    all.key.Thread,
				CompletedAt: p.CompletedAt,
			})
		}
	}
	ends := map[string]thread.RunEnd{}
	for _, v := range all.values[store.KindOutcome] {
		var o thread.RunEnd
		if thread.Decode(v.Data, &o) == nil {
			ends[v.ID] = o
		}
	}
	for _, v := range all.values[store.KindRun] {
		var r thread.Run
		if thread.Decode(v.Data, &r) == nil {
			o := ends[v.ID]
			in.Runs = append(in.Runs, InspectedRun{
				ID:        v.ID,
				Agent:     r.Agent,
				Revision:  r.Revision,
				Continues: r.Continues,
				StartedAt: r.StartedAt,
				Outcome:   o.Outcome,
				Code:      o.Code,
				EndedAt:   o.EndedAt,
			})
		}
	}
	slices.SortStableFunc(in.Runs, func(a, b InspectedRun) int { return a.StartedAt.Compare(b.StartedAt) })
}

// at describes the history, the shared state and the open calls of a state.
func (in *Inspection) at(all *everything, st *thread.State) {
	byID := make(map[string]*store.Message, len(all.messages))
	for i := range all.messages {
		byID[all.messages[i].ID] = &all.messages[i]
	}
	for id := st.Leaf; byID[id] != nil && len(in.History) < len(all.messages); id = byID[id].Parent {
		in.History = append(in.History, inspected(byID[id]))
	}
	slices.Reverse(in.History)
	if shared, err := thread.SharedIn(st.Shared, all.blob); err == nil {
		in.State = shared.State
	}
	if shown, err := all.middlewareState(st); err == nil {
		in.Middleware = shown
	}
	for _, c := range st.Calls {
		open := threads.OpenCall{ID: c.ID, Tool: c.Name}
		if c.Waits() {
			open.Interrupt = c.Interrupt.ID
		}
		in.Open = append(in.Open, open)
	}
}

// inspected returns a message as a person reads it.
func inspected(s *store.Message) InspectedMessage {
	m, err := agui.DecodeMessage(s.Data)
	if err != nil {
		return InspectedMessage{ID: s.ID, Role: "unreadable", Text: string(s.Data)}
	}
	out := InspectedMessage{ID: s.ID, Role: m.Role, CallID: m.ToolCallID, Text: string(m.Content)}
	if d, err := m.Domain(); err == nil {
		out.Text = d.PlainText()
		if others := len(d.Parts); others > 0 && out.Text == "" {
			out.Text = fmt.Sprintf("(%d parts that are not text)", others)
		}
	}
	if media, is := thread.MediaOf(&m); is {
		out.Text = fmt.Sprintf("(%s of type %s, %d bytes, of message %s)", media.Type, media.Source.MIMEType,
			len(media.Source.Value), media.Of)
	}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, InspectedCall{ID: c.ID, Tool: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out
}

// middlewareState returns the middleware's states as somebody may see them who reads a
// store without the program.
func (all *everything) middlewareState(st *thread.State) (json.RawMessage, error) {
	if st.Schema == "" && len(st.States) == 0 {
		return nil, nil
	}
	var info state.SchemaInfo
	for _, v := range all.values[store.KindBlob] {
		if st.Schema != "" && v.ID == thread.SchemaBlob(st.Schema) {
			if err := json.Unmarshal(v.Data, &info); err != nil {
				return nil, errors.Join(thread.ErrUnreadable, err)
			}
		}
	}
	s := thread.EmptySchema()
	return s.Shown(s.Restore(info, st.Values(info), nil))
}
