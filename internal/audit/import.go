package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Import writes a document into a store as a new thread. A store takes only commits, so
// the thread is made again by commits that give its records the numbers and tags they
// had. Only the last commit has the state: until then nobody can work with the copy, and
// if one fails the copy is removed.

// Import makes a thread out of a document, in a store that has none of that key. The
// numbers and tags of the records survive, and so do cursors. A thread that runs is stopped
// in the copy, with code cut_off, because its owner does not know the copy. A document that
// Check finds damaged is refused, and nothing is written.
func Import(
	ctx context.Context, store store.Store, key store.ThreadKey, d *Document, now time.Time,
	newID func(prefix string) string,
) error {
	all, err := d.everything(key)
	if err != nil {
		return err
	}
	if problems := all.checked(); len(problems) > 0 {
		return damagedDocument(problems)
	}
	st, err := thread.DecodeState(all.head.State)
	if err != nil {
		return fmt.Errorf("%w: %w", errDocument, err)
	}
	if err := fits(ctx, store, st.Format); err != nil {
		return err
	}
	if was := d.key(); key != was {
		if err := all.rename(st, was, newID("")); err != nil {
			return fmt.Errorf("%w: %w", errDocument, err)
		}
	}
	if st.Running() {
		if err := all.stop(st, now, newID); err != nil {
			return err
		}
	}
	commits, err := all.commits(st, newID)
	if err != nil {
		return err
	}
	return commitAll(ctx, store, commits)
}

// fits returns an error for a document of a format that the servers of the store do not write
// yet: some of them may not read it.
func fits(ctx context.Context, store store.Store, format int) error {
	f, err := dataformat.Of(ctx, store)
	if err != nil {
		return err
	}
	if f.Write > 0 && format > f.Write {
		return fmt.Errorf("%w: it has data format %d, and the servers of this store write format %d, because some "+
			"may not read a newer one: first finish their upgrade (--data-format=%d)", errDocument, format, f.Write,
			format)
	}
	return nil
}

// maxProblems is how many problems a refusal names.
const maxProblems = 10

// damagedDocument says why a document is refused.
func damagedDocument(problems []Problem) error {
	if problems[0].What == codes.VersionTooNew {
		return fmt.Errorf("%w: %s: %w", errDocument, problems[0].Detail, store.ErrVersionTooNew)
	}
	var lines []string
	for _, p := range problems[:min(len(problems), maxProblems)] {
		detail, _, _ := strings.Cut(p.Detail, "\n") // without the stack of a panic
		lines = append(lines, p.What+": "+detail)
	}
	if more := len(problems) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: it is damaged:\n  %s", errDocument, strings.Join(lines, "\n  "))
}

// stop ends the thread's run as if its owner had died, so that an empty-messages POST
// continues it.
func (all *everything) stop(st *thread.State, now time.Time, newID func(prefix string) string) error {
	h, reason := all.head, thread.CutOff(st.Iteration)
	c := &store.Commit{ID: newID("c")}
	ev := agui.NewRunError(reason)
	ev.Timestamp = now.UnixMilli()
	h.Fence = store.Fence{Epoch: h.Fence.Epoch + 1, Nonce: newID("")}
	takeBack(st, all.records)
	events := []agui.Event{ev}
	if thread.Predicts(&st.Work, all.records) {
		events = []agui.Event{agui.StateRef{ID: st.Shared}, ev}
	}
	var last store.Cursor
	for _, ev := range events {
		last = store.Cursor{Number: h.Next, Tag: h.Fence.Tag()}
		all.records = append(all.records, store.Record{Cursor: last, Data: agui.Append(nil, ev)})
		h.Next++
	}
	st.Predicted = false
	if err := st.Stop(reason); err != nil {
		return err
	}
	st.Boundary = last
	st.Advanced()
	thread.AddCheckpoint(c, st, thread.SourceLoop, st.Iteration, now, 0)
	thread.PutRunEnd(c, st.Run(), st.RunEnd(now, last.Number))
	for _, v := range c.Put {
		all.values[v.Kind] = append(all.values[v.Kind], v)
	}
	h.Process, h.ETag, h.UpdatedAt = "", c.ID, now
	return nil
}

// takeBack notes which calls the thread's unfinished answer has shown, so that the copy
// does not use their ids again.
func takeBack(st *thread.State, records []store.Record) {
	for _, r := range records {
		if r.Number <= st.Boundary.Number || agui.TypeOf(r.Data) != agui.TypeToolCallStart {
			continue
		}
		if ev, err := agui.DecodeEvent(r.Data); err == nil {
			st.TakeBack(ev.(agui.ToolCallStart).ToolCallID)
		}
	}
}

// The bounds of an import.
const (
	importBytes   = 4 << 20    // about how much data one commit holds
	importRecords = 4096       // how many records one commit holds
	maxTrimmed    = 50_000_000 // how many trimmed records can be replaced for a moment
)

// commits returns the commits that make the thread. Only the last one has the state: an
// incomplete copy cannot be read, so nobody works with it.
func (all *everything) commits(st *thread.State, newID func(prefix string) string) ([]*store.Commit, error) {
	b := &copying{head: all.head, newID: newID}
	trimmed := all.head.Next - 1
	if len(all.records) > 0 {
		trimmed = all.records[0].Number - 1
	}
	if trimmed > maxTrimmed {
		return nil, fmt.Errorf("%w: its log begins after record %d; %d is the most", errDocument, trimmed, maxTrimmed)
	}
	// A record gets its number from those before it, so the trimmed ones must exist for a
	// moment.
	for n := range trimmed {
		b.record(store.Record{Cursor: store.Cursor{Number: n + 1}, Data: []byte("{}")})
	}
	b.trim(trimmed)
	for _, r := range all.records {
		b.record(r)
	}
	for _, m := range all.messages {
		c := b.room(len(m.Data))
		c.Messages = append(c.Messages, m)
	}
	for _, kind := range store.Kinds() {
		for _, v := range all.values[kind] {
			c := b.room(len(v.Data))
			c.Put = append(c.Put, v)
		}
	}
	last := b.begin(all.head.Fence)
	thread.Save(last, st)
	if all.head.ETag != "" {
		last.ID = all.head.ETag
	}
	if o := st.Origin; o != nil && o.Thread != all.key.Thread {
		b.commits[0].Parent = o.Thread
	}
	return b.commits, nil
}

// copying makes the commits of an import one after the other.
type copying struct {
	head    *store.Head
	newID   func(prefix string) string
	commits []*store.Commit
	tag     string // of the records of the last commit
	bytes   int    // in the last commit
}

// begin begins the next commit, under a fence.
func (b *copying) begin(fence store.Fence) *store.Commit {
	c := &store.Commit{
		Key:       b.head.Key,
		ID:        b.newID("c"),
		Expect:    store.Position{Next: 1},
		User:      b.head.User,
		Fence:     fence,
		UpdatedAt: b.head.UpdatedAt,
	}
	if n := len(b.commits); n > 0 {
		before := b.commits[n-1]
		c.Expect = store.Position{
			Fence: before.Fence,
			Next:  before.Expect.Next + uint64(len(before.Records)),
			ETag:  before.ID,
		}
	}
	b.commits = append(b.commits, c)
	b.bytes = 0
	return c
}

// room returns a commit with room for size bytes.
func (b *copying) room(size int) *store.Commit {
	if len(b.commits) == 0 || b.bytes > 0 && b.bytes+size > importBytes {
		b.begin(b.head.Fence)
	}
	b.bytes += size
	return b.commits[len(b.commits)-1]
}

// record appends a record. Its tag is that of its commit's fence.
func (b *copying) record(r store.Record) {
	n := len(b.commits)
	if n == 0 || b.tag != r.Tag || len(b.commits[n-1].Records) >= importRecords || b.bytes > importBytes {
		fence := store.Fence{Epoch: b.head.Fence.Epoch, Nonce: r.Tag}
		if len(r.Tag) == store.TagLength || r.Tag == "" {
			fence.Nonce += b.newID("")
		}
		b.begin(fence)
		b.tag = r.Tag
	}
	c := b.commits[len(b.commits)-1]
	c.Records = append(c.Records, r.Data)
	b.bytes += len(r.Data)
}

// trim makes the next commit remove the records up to a number.
func (b *copying) trim(number uint64) {
	if number > 0 {
		b.begin(b.head.Fence).Trim = number
		b.tag = ""
	}
}

// commitAll makes the thread, or nothing. It looks first whether there is one already: what a store writes
// ahead of a commit would stay for a while if that is refused.
func commitAll(ctx context.Context, db store.Store, commits []*store.Commit) error {
	taken := func(err error) error {
		return fmt.Errorf("there is a thread %s already, choose another name for the copy: %w", commits[0].Key, err)
	}
	switch _, err := db.Head(ctx, commits[0].Key); {
	case err == nil:
		return taken(store.ErrConflict)
	case !errors.Is(err, store.ErrNotFound) && !thread.Unreadable(err):
		return fmt.Errorf("import thread %s: %w", commits[0].Key, err)
	}
	for i, c := range commits {
		err := db.Commit(ctx, c)
		if err == nil {
			continue
		}
		if i == 0 && errors.Is(err, store.ErrConflict) {
			return taken(err)
		}
		// Remove what is there so far. Whether this commit was made is not known, so both
		// positions are tried.
		clean := context.WithoutCancel(ctx)
		after := store.Position{Fence: c.Fence, Next: c.Expect.Next + uint64(len(c.Records)), ETag: c.ID}
		left := db.Delete(clean, c.Key, after)
		if i > 0 && left != nil {
			left = db.Delete(clean, c.Key, c.Expect)
		}
		if errors.Is(left, store.ErrConflict) || errors.Is(left, store.ErrFenced) {
			left = nil // somebody else's
		}
		return errors.Join(fmt.Errorf("import thread %s: %w", c.Key, err), left)
	}
	return nil
}

// rename gives the thread the name of its key wherever its own data contains the name. The
// copy is another thread, so it gets an incarnation of its own; its open calls keep their
// idempotency keys, which were made of the old name.
func (all *everything) rename(st *thread.State, was store.ThreadKey, incarnation string) error {
	st.Incarnate(was, all.head.User, incarnation)
	for i := range all.records {
		all.records[i].Data = renamedEvent(all.records[i].Data, all.key.Thread)
	}
	for i, v := range all.values[store.KindCheckpoint] {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return err
		}
		cp.State.Incarnate(was, all.head.User, incarnation)
		all.values[store.KindCheckpoint][i].Data = thread.MustJSON(cp)
	}
	for i, v := range all.values[store.KindLog] {
		a := &thread.ArchivedLog{}
		if err := thread.Decode(v.Data, a); err != nil {
			return err
		}
		for n := range a.Entries {
			a.Entries[n].Data = renamedEvent(a.Entries[n].Data, all.key.Thread)
		}
		all.values[store.KindLog][i].Data = thread.MustJSON(a)
	}
	return nil
}

// renamedEvent returns a record with the thread's new name in it.
func renamedEvent(data []byte, id string) []byte {
	switch agui.TypeOf(data) {
	case agui.TypeRunStarted, agui.TypeRunFinished:
	default:
		return data
	}
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		return data
	}
	switch ev := ev.(type) {
	case agui.RunStarted:
		ev.ThreadID = id
		return agui.Append(nil, ev)
	case agui.RunFinished:
		ev.ThreadID = id
		return agui.Append(nil, ev)
	}
	return data
}
