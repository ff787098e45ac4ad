package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A document that comes over the network may say anything. Things that a user could not have
// brought about otherwise are taken out of it: states of middleware, which remember what
// people have allowed, answers, results that no tool has given, and calls that would be made.
// The words stay, marked as imported. Outgoing documents lack everything that their reader may
// not see.

// maxBefore bounds how many records a foreign document may begin after: each is written for a
// moment.
const maxBefore = 200_000

// maxTitle bounds a title, in bytes; one that nobody could have given the thread is made
// again.
const maxTitle = 256

// ErrDocument means that a document cannot be imported; the error says why.
var ErrDocument = errDocument

// ImportForeign is [Import] for a document that a user has brought, which becomes a thread of
// theirs with the given key. It rests, whatever it did, with its open calls given up.
func ImportForeign(
	ctx context.Context, db store.Store, key store.ThreadKey, user string, d *Document, now time.Time,
	newID func(prefix string) string,
) (*thread.Thread, error) {
	stamp := func() clock.Stamp { return clock.At(now) }
	return importForeign(ctx, DeskConfig{Store: db, Now: stamp, NewID: newID}, key, user, d)
}

// importForeign is [ImportForeign] with what a desk says.
func importForeign(
	ctx context.Context, cfg DeskConfig, key store.ThreadKey, user string, d *Document,
) (*thread.Thread, error) {
	db, now, newID := cfg.Store, cfg.Now().Time(), cfg.NewID
	all, err := d.everything(key)
	if err != nil {
		return nil, err
	}
	if err := all.strict(); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	all.head.User, all.head.UpdatedAt = user, now
	if problems := all.checked(); len(problems) > 0 {
		return nil, damagedDocument(problems)
	}
	if len(all.records) > 0 && all.records[0].Number > maxBefore || len(all.records) == 0 && all.head.Next > maxBefore {
		return nil, fmt.Errorf("%w: its log begins after record %d; over HTTP %d is the most", errDocument,
			all.head.Next, maxBefore)
	}
	st, err := thread.DecodeState(all.head.State)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	if st.Run() == "" || st.Leaf == "" {
		return nil, fmt.Errorf("%w: its head names no run, or no message", errDocument)
	}
	if err := fits(ctx, db, st.Format); err != nil {
		return nil, err
	}
	if st.Running() {
		if err := all.stop(st, now, newID); err != nil {
			return nil, err
		}
	}
	if err := all.disown(st, newID); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	if err := all.checkState(ctx, cfg, st); err != nil {
		return nil, err
	}
	if err := all.rename(st, d.key(), newID("")); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	all.head.ETag, all.head.Process, all.head.State = newID("c"), "", st.Encode()
	if problems := all.checked(); len(problems) > 0 {
		return nil, damagedDocument(problems)
	}
	commits, err := all.commits(st, newID)
	if err != nil {
		return nil, err
	}
	for _, c := range commits {
		c.UpdatedAt = now
	}
	return &thread.Thread{Key: key, Head: all.head, State: st}, commitAll(ctx, db, commits)
}

// checkState returns an error for a shared state that a thread of its agent may not have.
func (all *everything) checkState(ctx context.Context, cfg DeskConfig, st *thread.State) error {
	if cfg.CheckState == nil || st.Shared == "" {
		return nil
	}
	shared, err := thread.SharedIn(st.Shared, all.blob)
	if err != nil {
		return fmt.Errorf("%w: %w", errDocument, err)
	}
	return cfg.CheckState(ctx, st.Agent, shared.State)
}

// strict returns an error for data that no request could have brought: that it is in base64 in
// the document kept it from being checked with the rest.
func (all *everything) strict() error {
	data := [][]byte{all.head.State}
	for i := range all.messages {
		data = append(data, all.messages[i].Data)
	}
	for i := range all.records {
		data = append(data, all.records[i].Data)
	}
	for _, values := range all.values {
		for i := range values {
			data = append(data, values[i].Data)
		}
	}
	for _, d := range data {
		if _, err := strictjson.Check(d, nil); err != nil {
			return err
		}
	}
	return nil
}

// disown takes out of a thread what its user may not bring, and has it rest.
func (all *everything) disown(st *thread.State, newID func(prefix string) string) error {
	for i := range all.messages {
		if err := markForeign(i, &all.messages[i]); err != nil {
			return err
		}
	}
	for i, v := range all.values[store.KindRun] {
		var rec thread.Run
		if err := thread.Decode(v.Data, &rec); err != nil {
			return err
		}
		rec.User, rec.Traceparent = all.head.User, ""
		all.values[store.KindRun][i].Data = thread.MustJSON(rec)
	}
	if err := all.trimmed(st); err != nil {
		return err
	}
	leaf := st.Leaf
	for i := range st.Calls {
		m := agui.FromDomain(holdfast.Message{
			ID:     newID("msg"),
			Role:   holdfast.RoleTool,
			CallID: st.Calls[i].ID,
			Text:   thread.TextAbandoned,
		})
		m.MarkImported()
		_, data := thread.Stored(m)
		all.messages = append(all.messages, store.Message{ID: m.ID, Parent: leaf, Data: data})
		leaf = m.ID
		st.Count++
	}
	st.Rewind(leaf)
	if st.Measured = false; len(st.Title) > maxTitle || strings.ContainsFunc(st.Title, unicode.IsControl) {
		st.Title = ""
	}
	return nil
}

// markForeign takes out of a message what a server says about it, and notes that it is not this
// server's, unless it is a user's.
func markForeign(i int, m *store.Message) error {
	decoded, err := agui.DecodeMessage(m.Data)
	if err != nil {
		return err
	}
	if err := decoded.Check(i); err != nil {
		return fmt.Errorf("message %s: %s", m.ID, holdfast.AsError(err).Message)
	}
	if decoded.ID != m.ID {
		return fmt.Errorf("message %s calls itself %s", m.ID, decoded.ID)
	}
	shown, err := decoded.Domain()
	if err != nil {
		return fmt.Errorf("message %s: %w", m.ID, err)
	}
	if byURL(&shown) {
		return fmt.Errorf("message %s has media by URL, which is not taken over HTTP", m.ID)
	}
	failed, activity := thread.Failed(&decoded), thread.ImportedActivity(&decoded)
	decoded.DropMarks()
	switch {
	case activity != nil:
		decoded.Mark(activity)
	case failed:
		thread.MarkFailed(&decoded) // no model is shown it here either
	case decoded.Role != string(holdfast.RoleUser):
		decoded.MarkImported()
	}
	_, m.Data = thread.Stored(decoded)
	return nil
}

// byURL reports whether a message has media that are not in it.
func byURL(m *holdfast.Message) bool {
	var made struct {
		URL string `json:"url"`
	}
	if m.Activity != nil && json.Unmarshal(m.Activity.Content, &made) == nil {
		return made.URL != "" && !strings.HasPrefix(made.URL, "data:")
	}
	return slices.ContainsFunc(m.Parts, func(p holdfast.Part) bool {
		return p.Source != nil && p.Source.Type == holdfast.SourceURL
	})
}

// privateKinds are values that say what was allowed, done or kept.
var privateKinds = []store.Kind{store.KindIntent, store.KindPending, store.KindReuse, store.KindOutside}

// trimmed takes out of the thread, whose state is st, what no document over HTTP brings: values
// of calls under way, states of middleware, and checkpoints with open calls or questions.
func (all *everything) trimmed(st *thread.State) error {
	for _, kind := range privateKinds {
		delete(all.values, kind)
	}
	bare(st)
	kept := []store.Value{}
	st.LastCheckpoint = ""
	for _, v := range all.values[store.KindCheckpoint] {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return err
		}
		if len(cp.State.Calls) > 0 || cp.State.Question != nil {
			continue
		}
		bare(cp.State)
		cp.Parent, cp.ParentThread = st.LastCheckpoint, ""
		st.LastCheckpoint = cp.ID
		v.Data = thread.MustJSON(cp)
		kept = append(kept, v)
	}
	all.values[store.KindCheckpoint] = kept
	all.hideSchemas()
	return nil
}

// hideSchemas removes the schemas of middleware states.
func (all *everything) hideSchemas() {
	all.values[store.KindBlob] = slices.DeleteFunc(all.values[store.KindBlob], func(v store.Value) bool {
		_, is := thread.SchemaOf(v.ID)
		return is
	})
}

// bare takes out of a state what the server itself has decided or remembers.
func bare(st *thread.State) {
	hide(st)
	st.Happened, st.Answers, st.Reuse, st.OnlyRecorded, st.Origin = nil, nil, false, false, nil
	for i := range st.Calls {
		c := &st.Calls[i]
		*c = thread.Call{ID: c.ID, Name: c.Name, Run: c.Run, Frontend: c.Frontend}
	}
}

// hide takes out of a state what its reader may not see.
func hide(st *thread.State) {
	st.Schema, st.States, st.StateVersions, st.NewerStates, st.Redacted = "", nil, nil, nil, nil
	for i := range st.Calls {
		st.Calls[i].Kept = nil
		if o := st.Calls[i].Outside; o != nil {
			lean := *o
			lean.Tokens = nil
			st.Calls[i].Outside = &lean
		}
	}
}

// ExportShown is [Export] for a thread's owner, without what is hidden from them: the states of
// middleware, and what lets others finish calls. A thread of another user is ErrNotFound: it
// may have been made since somebody asked whose it is.
func ExportShown(ctx context.Context, db store.Reader, key store.ThreadKey, user string) (*Document, error) {
	all, err := readAll(ctx, db, key)
	if err == nil && all.head.User != user {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	st, err := thread.DecodeState(all.head.State)
	if err != nil {
		return nil, err
	}
	hide(st)
	all.head.State = st.Encode()
	for i, v := range all.values[store.KindCheckpoint] {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return nil, err
		}
		hide(cp.State)
		all.values[store.KindCheckpoint][i].Data = thread.MustJSON(cp)
	}
	all.hideSchemas()
	delete(all.values, store.KindOutside)
	return all.document(), nil
}
