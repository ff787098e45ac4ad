// Package audit works on a stored thread without an engine: it checks what is always true
// of one, describes it for a person, exports and imports it, and says what its states need
// before a new version can continue it. It reads all that a store holds of a thread at
// one moment. Only Import writes. The command line tool and tests use it; a test that
// kills a server checks each thread with it afterwards.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Check checks the assumptions of the rest of the engine: a head that can be read, an owner
// exactly while the thread runs, a whole message tree, a result for each call, and a log
// without gaps (history.go, log.go). Each problem has a name that scripts can rely on and a
// sentence for people.

// Problem is something about a stored thread that must not be.
type Problem struct {
	Key store.ThreadKey // of the thread
	// Code names the kind of problem. It does not change between versions.
	What string
	// Detail describes it for a person.
	Detail string
}

// Check checks what is always true of a stored thread. It needs no engine and writes
// nothing. A thread of a newer version is one problem and is not looked into. The error is
// ErrConflict for a thread that keeps changing, or the store's.
func Check(ctx context.Context, db store.Store, key store.ThreadKey) ([]Problem, error) {
	all, err := readAll(ctx, db, key)
	switch {
	case errors.Is(err, store.ErrVersionTooNew):
		return []Problem{{Key: key, What: codes.VersionTooNew, Detail: err.Error()}}, nil
	case errors.Is(err, store.ErrUnreadable):
		return []Problem{{Key: key, What: "thread_unreadable", Detail: err.Error()}}, nil
	case err != nil:
		return nil, err
	}
	return all.checked(), nil
}

// checked is check for what may be anything.
func (all *everything) checked() (problems []Problem) {
	err := routine.Caught(func() error { problems = all.check(); return nil })
	if err != nil {
		return []Problem{
			{Key: all.key, What: "thread_unreadable", Detail: "what is stored cannot be made sense of: " + err.Error()},
		}
	}
	return problems
}

// maxReads bounds how often a thread that keeps changing is read.
const maxReads = 5

// everything is all that a store holds of a thread at one moment.
type everything struct {
	key      store.ThreadKey
	head     *store.Head
	messages []store.Message
	records  []store.Record
	values   map[store.Kind][]store.Value // by ascending ids
}

// readAll reads a thread. Reads of a store are not one transaction, so it reads again if
// the head has moved.
func readAll(ctx context.Context, db store.Reader, key store.ThreadKey) (*everything, error) {
	for range maxReads {
		all, err := tryReadAll(ctx, db, key)
		if errors.Is(err, store.ErrCursor) {
			continue // the log was trimmed between two reads
		}
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", key, err)
		}
		after, err := db.Head(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", key, err)
		}
		if after.ETag == all.head.ETag {
			return all, nil
		}
	}
	return nil, fmt.Errorf("thread %s changes while it is read: %w", key, store.ErrConflict)
}

// tryReadAll reads a thread once.
func tryReadAll(ctx context.Context, db store.Reader, key store.ThreadKey) (*everything, error) {
	head, err := db.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	all := &everything{key: key, head: head, values: map[store.Kind][]store.Value{}}
	if all.messages, err = db.Messages(ctx, key); err != nil {
		return nil, err
	}
	if all.records, err = readLog(ctx, db, key, head.Next); err != nil {
		return nil, err
	}
	for _, kind := range store.Kinds() {
		values, err := db.Values(ctx, key, kind, "", 0)
		if err != nil {
			return nil, err
		}
		slices.Reverse(values)
		all.values[kind] = values
	}
	return all, nil
}

// readLog reads the live log up to the record before next.
func readLog(ctx context.Context, db store.Reader, key store.ThreadKey, next uint64) ([]store.Record, error) {
	var records []store.Record
	after := store.Cursor{}
	for after.Number+1 < next {
		page, err := db.Records(ctx, key, after, 4096)
		if err != nil || len(page) == 0 {
			return records, err
		}
		records = append(records, page...)
		after = page[len(page)-1].Cursor
	}
	return records, nil
}

// audit is the work of Check: what it has found so far, and what it could read.
type audit struct {
	*everything
	st       *thread.State
	problems []Problem
	tooNew   bool

	tree        map[string]*auditMessage
	calls       map[string]bool // the ids of all calls
	runs        map[string]*thread.Run
	checkpoints []*thread.Checkpoint
	// lines are the versions of the shared state that are good: how many patches, by the whole one.
	lines map[string]int
}

// check finds the problems, always in the same order.
func (all *everything) check() []Problem {
	a := &audit{
		everything: all,
		tree:       map[string]*auditMessage{},
		calls:      map[string]bool{},
		runs:       map[string]*thread.Run{},
		lines:      map[string]int{},
	}
	var err error
	if a.st, err = thread.DecodeState(all.head.State); err != nil {
		a.cannotRead("head", "the head", err)
		return a.problems
	}
	a.readRuns()
	a.readCheckpoints()
	a.owner()
	a.messageTree()
	a.schemas()
	a.refersTo("the head", a.st)
	a.checkpointList()
	a.work()
	a.log()
	if a.tooNew {
		i := slices.IndexFunc(a.problems, func(p Problem) bool { return p.What == codes.VersionTooNew })
		return a.problems[i : i+1]
	}
	return a.problems
}

// add adds a problem.
func (a *audit) add(what, format string, args ...any) {
	a.problems = append(a.problems, Problem{Key: a.key, What: what, Detail: fmt.Sprintf(format, args...)})
}

// cannotRead adds the problem of a value that could not be read.
func (a *audit) cannotRead(what, name string, err error) {
	switch {
	case errors.Is(err, store.ErrVersionTooNew):
		a.tooNew = true
		a.add(codes.VersionTooNew, "%s was written by a newer version: %v", name, err)
	case errors.Is(err, thread.ErrNegative):
		a.add(what+"_invalid", "%s: %v", name, err)
	default:
		a.add(what+"_unreadable", "%s: %v", name, err)
	}
}

// owner checks that the thread has an owner exactly while it runs.
func (a *audit) owner() {
	switch running := a.st.Running(); {
	case running && a.head.Process == "":
		a.add("owner_missing", "the thread runs, but the head names no owner: nobody takes it over")
	case !running && a.head.Process != "":
		a.add("owner_left", "the thread is %s, but the head names the owner %s", a.st.Status(), a.head.Process)
	}
}

// readRuns reads how the runs began and ended.
func (a *audit) readRuns() {
	for _, v := range a.values[store.KindRun] {
		rec := &thread.Run{}
		if err := thread.Decode(v.Data, rec); err != nil {
			a.cannotRead("run", "run "+v.ID, err)
			continue
		}
		if rec.ID != v.ID {
			a.add("run_misnamed", "run %s calls itself %s", v.ID, rec.ID)
		}
		a.runs[v.ID] = rec
	}
	for _, v := range a.values[store.KindOutcome] {
		if err := thread.Decode(v.Data, &thread.RunEnd{}); err != nil {
			a.cannotRead("outcome", "the outcome of run "+v.ID, err)
		}
	}
}

// readCheckpoints reads the listed checkpoints.
func (a *audit) readCheckpoints() {
	for _, v := range a.values[store.KindCheckpoint] {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			a.cannotRead("checkpoint", "checkpoint "+v.ID, err)
			continue
		}
		if cp.ID != v.ID {
			a.add("checkpoint_misnamed", "checkpoint %s calls itself %s", v.ID, cp.ID)
		}
		a.checkpoints = append(a.checkpoints, cp)
	}
}

// refersTo checks that what a state refers to is there: its messages, the shared state, the
// schema, and the run.
func (a *audit) refersTo(name string, st *thread.State) {
	if st.Leaf != "" {
		path, whole := a.path(st.Leaf)
		switch {
		case a.tree[st.Leaf] == nil:
			a.add("leaf_missing", "%s ends at message %s, which is not there", name, st.Leaf)
		case whole && st.Count != 0 && st.Count != len(path):
			a.add("count_wrong", "%s counts %d messages, the history has %d", name, st.Count, len(path))
		}
	}
	if st.Shared != "" {
		a.sharedState(name, st.Shared)
	}
	if st.Schema != "" && !a.has(store.KindBlob, thread.SchemaBlob(st.Schema)) {
		a.add("schema_missing", "%s refers to the schema %s of middleware states, which is not there", name, st.Schema)
	}
	if st.Run() != "" && !a.has(store.KindRun, st.Run()) {
		a.add("run_missing", "%s names the run %s, which is not there", name, st.Run())
	}
}

// sharedState checks that a version of the shared state can be put together. Of versions of one line only the
// longest is tried, if that is good: the others are parts of it.
func (a *audit) sharedState(name, id string) {
	base, n := thread.SharedLine(id)
	if n <= a.lines[base] && n > 0 {
		return
	}
	state, err := thread.SharedIn(id, a.blob)
	switch {
	case errors.Is(err, thread.ErrNoBlob):
		a.add("state_missing", "%s refers to the shared state %s, which is not there", name, id)
	case err != nil:
		a.cannotRead("state", fmt.Sprintf("the shared state %s of %s", id, name), err)
	case !json.Valid(state.State):
		a.add("state_unreadable", "%s refers to the shared state %s, which is not JSON", name, id)
	default:
		a.lines[base] = n
	}
}

// blob returns the data of a blob.
func (all *everything) blob(id string) ([]byte, bool) {
	blobs := all.values[store.KindBlob]
	i, found := slices.BinarySearchFunc(blobs, id, func(v store.Value, id string) int { return cmp.Compare(v.ID, id) })
	if !found {
		return nil, false
	}
	return blobs[i].Data, true
}

// schemas checks that each schema of middleware states is the one that it is referred to
// as: its name is made of its content.
func (a *audit) schemas() {
	for _, v := range a.values[store.KindBlob] {
		ref, is := thread.SchemaOf(v.ID)
		switch {
		case !is:
		case !json.Valid(v.Data):
			a.add("schema_unreadable", "the schema %s of middleware states is not JSON", ref)
		case thread.SchemaRef(v.Data) != ref:
			a.add("schema_wrong", "the schema %s of middleware states has another content", ref)
		}
	}
}

// has reports whether the thread has the value.
func (a *audit) has(kind store.Kind, id string) bool {
	_, found := a.find(kind, id)
	return found
}

// find returns the place of a value.
func (a *audit) find(kind store.Kind, id string) (i int, found bool) {
	return slices.BinarySearchFunc(a.values[kind], id, func(v store.Value, id string) int {
		return cmp.Compare(v.ID, id)
	})
}

// checkpointList checks the listed checkpoints. Only the oldest may be missing, because
// they were pruned.
func (a *audit) checkpointList() {
	if last := a.st.LastCheckpoint; last != "" && !a.has(store.KindCheckpoint, last) {
		a.add("checkpoint_missing", "the newest checkpoint %s is not there", last)
	}
	for _, cp := range a.checkpoints {
		name := "checkpoint " + cp.ID
		if cp.ID > a.st.LastCheckpoint {
			a.add("checkpoint_order", "%s is newer than the newest, %s", name, a.st.LastCheckpoint)
		}
		parent := cp.Parent
		switch {
		case parent == "" || cp.ParentThread != "":
		case parent >= cp.ID:
			a.add("checkpoint_order", "%s follows %s, which was taken later", name, parent)
		case parent >= a.checkpoints[0].ID && !a.has(store.KindCheckpoint, parent):
			a.add("checkpoint_parent_missing", "%s follows checkpoint %s, which is not there", name, parent)
		}
		a.refersTo(name, cp.State)
	}
}

// work checks the values of calls that are under way: intents, pending writes, and the
// results that may be used again.
func (a *audit) work() {
	for _, v := range a.values[store.KindIntent] {
		if err := thread.Decode(v.Data, &thread.Intent{}); err != nil {
			a.cannotRead("intent", "the intent of call "+v.ID, err)
		}
		if !a.calls[v.ID] {
			a.add("intent_unknown_call", "an intent names the call %s, which no message makes", v.ID)
		}
	}
	for _, v := range a.values[store.KindPending] {
		p := thread.PendingWrite{}
		if err := thread.Decode(v.Data, &p); err != nil {
			a.cannotRead("pending", "the pending write of call "+v.ID, err)
			continue
		}
		if p.CallID != v.ID || !a.calls[v.ID] {
			a.add("pending_unknown_call", "a pending write names the call %s, which no message makes", v.ID)
		}
		if m := a.tree[p.Message]; m == nil || m.Role != string(holdfast.RoleTool) || m.ToolCallID != v.ID {
			a.add("pending_message_missing", "the pending write of call %s names message %s, which is not its result",
				v.ID, p.Message)
		}
	}
	for _, v := range a.values[store.KindReuse] {
		if err := thread.Decode(v.Data, &thread.RecordedResult{}); err != nil {
			a.cannotRead("reuse", "the recorded result "+v.ID, err)
		}
	}
	for _, v := range a.values[store.KindOutside] {
		if err := thread.Decode(v.Data, &thread.OutsideEnd{}); err != nil {
			a.cannotRead("outside", "how call "+v.ID+" ended", err)
		}
		if !a.calls[v.ID] {
			a.add("outside_unknown_call", "a value says how call %s ended, which no message makes", v.ID)
		}
	}
}

// auditMessage is a message of the tree.
type auditMessage struct {
	agui.Message
	parent string
}
