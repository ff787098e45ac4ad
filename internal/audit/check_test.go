package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// wantSound fails the test if Check finds a problem.
func wantSound(t *testing.T, store store.Store, id string) {
	t.Helper()
	if problems := looptest.Must(Check(t.Context(), store, looptest.KeyOf(id)))(t); len(problems) > 0 {
		t.Errorf("thread %s: %+v", id, problems)
	}
}

// finishedThread is a store with a thread that has run once.
func finishedThread(t *testing.T) (*memstore.Store, *looptest.Engine) {
	t.Helper()
	store := memstore.New()
	e := looptest.Start(t, store, nil, looptest.Traveller(&looptest.Notebook{}))
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	return store, e
}

// The threads of these tests are healthy, whatever has been done to them.

func TestAuditAfterTravels(t *testing.T) {
	store, e := finishedThread(t)
	wantSound(t, store, "t")
	all := looptest.Checkpoints(t, e, "t")
	for n, cp := range all {
		fork := fmt.Sprint("f", n)
		looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
			threads.Travel{Checkpoint: cp.ID, Thread: fork, ReuseResults: n == 0}))(t)
		wantSound(t, store, fork)
		looptest.Resumed(t, e, fork, "r2")
		wantSound(t, store, fork)
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, fork, threads.Travel{Message: "u1"}))(t)
		wantSound(t, store, fork)
		looptest.Resumed(t, e, fork, "r3")
		wantSound(t, store, fork)
	}
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: all[1].ID}))(t)
	wantSound(t, store, "t")
	looptest.Resumed(t, e, "t", "r4")
	looptest.Must(e.Keeper.Mark(t.Context(), looptest.Alice, "t",
		threads.Mark{Label: "here", State: json.RawMessage(`{"a": 1}`)}))(t)
	wantSound(t, store, "t")
	looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 2, false))(t)
	wantSound(t, store, "t")
}

func TestAuditOfArchivedThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		e := looptest.Start(t, store, nil, looptest.Wordy())
		for n := range 3 {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", fmt.Sprint("r", n), looptest.UserSays(fmt.Sprint("u", n), "go")))
			time.Sleep(75 * time.Millisecond)
			synctest.Wait()
			wantSound(t, store, "t") // in the middle of it
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			wantSound(t, store, "t")
			if n != 1 {
				time.Sleep(2 * time.Minute)
				wantSound(t, store, "t")
			}
		}
		first := looptest.Checkpoints(t, e, "t")[1]
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: first.ID}))(t)
		looptest.Resumed(t, e, "t", "r9")
		wantSound(t, store, "t")
		looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
		wantSound(t, store, "t")
		time.Sleep(2 * time.Minute)
		wantSound(t, store, "t")
	})
}

func TestAuditOfInterruptedThreads(t *testing.T) {
	ask := holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
		if holdfast.CallFrom(ctx).Answer == nil {
			return "", &holdfast.Interrupt{Message: "well?"}
		}
		return "thanks", nil
	})
	store := memstore.New()
	down := holdfast.Middleware{
		Name: "test.down",
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			if it.Run == "r2" && it.Number > 0 {
				return errors.New("down")
			}
			return nil
		},
	}
	e := looptest.Start(t, store, nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "fine"}),
		Tools:      []holdfast.Tool{ask},
		Middleware: []holdfast.Middleware{down},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	open := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunFinished).Outcome.Interrupts
	wantSound(t, store, "t")
	in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "and then?"))
	in.Resume = []agui.ResumeEntry{{InterruptID: open[0].ID, Status: agui.ResumeResolved, Payload: []byte(`"yes"`)}}
	reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", in)
	if _, failed := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunError); !failed {
		t.Fatal("the second run did not fail")
	}
	wantSound(t, store, "t")
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r3"))
	wantSound(t, store, "t")
}

func TestAuditAfterATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		hang := looptest.Tool("hang", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		model := looptest.Say(looptest.Calls("hang", "{}"), holdfast.Delta{Text: "done"})
		e := looptest.Start(t, first, nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{hang}})
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		synctest.Wait()
		wantSound(t, shared, "t")
		first.Dead.Store(true)
		quick := looptest.Tool("hang", holdfast.EffectIdempotent, func(context.Context) (string, error) {
			return "not any more", nil
		})
		looptest.Start(t, shared, nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{quick}})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantSound(t, shared, "t")
	})
}

// TestProblemsAreDocumented: every problem that check can report is in the operators' table.
func TestProblemsAreDocumented(t *testing.T) {
	docs := string(looptest.Must(os.ReadFile("../../docs/operations.md"))(t))
	said := regexp.MustCompile(`a\.add\("([a-z_]+)"`)
	kinds := regexp.MustCompile(`a\.cannotRead\("([a-z_]+)"`)
	for _, file := range looptest.Must(filepath.Glob("*.go"))(t) {
		text := string(looptest.Must(os.ReadFile(file))(t))
		var names []string
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		for _, m := range kinds.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1]+"_unreadable")
		}
		for _, name := range names {
			if !strings.Contains(docs, "`"+name+"`") {
				t.Errorf("docs/operations.md does not explain %s", name)
			}
		}
	}
}

// damage is a way to spoil a finished thread behind the loop's back.
type damage func(t *testing.T, all *everything, c *store.Commit)

func changeState(change func(*thread.State)) damage {
	return func(t *testing.T, all *everything, c *store.Commit) {
		st := looptest.Must(thread.DecodeState(all.head.State))(t)
		change(st)
		c.State = st.Encode()
	}
}

// running has the thread claim to run.
func running(st *thread.State, run string) {
	if err := st.Begin(run, st.Agent); err != nil {
		panic(err)
	}
}

func put(kind store.Kind, id, data string) damage {
	return func(_ *testing.T, _ *everything, c *store.Commit) {
		c.Put = append(c.Put, store.Value{Kind: kind, ID: id, Data: []byte(data)})
	}
}

// drop deletes the nth value of a kind.
func drop(kind store.Kind, n int) damage {
	return func(_ *testing.T, all *everything, c *store.Commit) {
		values := all.values[kind]
		n = (n + len(values)) % len(values)
		c.Delete = append(c.Delete, store.ValueID{Kind: kind, ID: values[n].ID})
	}
}

func forget(n int) damage {
	return func(_ *testing.T, all *everything, c *store.Commit) {
		c.Forget = append(c.Forget, all.messages[(n+len(all.messages))%len(all.messages)].ID)
	}
}

// says appends a message to the tree, and has the history end there.
func says(m holdfast.Message) damage {
	return func(t *testing.T, all *everything, c *store.Commit) {
		st := looptest.Must(thread.DecodeState(all.head.State))(t)
		stored := agui.FromDomain(m)
		c.Messages = append(c.Messages, store.Message{ID: m.ID, Parent: st.Leaf, Data: stored.AppendJSON(nil)})
		st.Leaf = m.ID
		st.Count++
		c.State = st.Encode()
	}
}

func appends(events ...agui.Event) damage {
	return func(_ *testing.T, _ *everything, c *store.Commit) {
		c.Records = append(c.Records, thread.EncodeEvents(events)...)
	}
}

// spoil changes one checkpoint.
func spoil(n int, change func(*thread.Checkpoint)) damage {
	return func(t *testing.T, all *everything, c *store.Commit) {
		v := all.values[store.KindCheckpoint][n]
		cp := looptest.Must(thread.DecodeCheckpoint(v.Data))(t)
		change(cp)
		c.Put = append(c.Put, store.Value{Kind: v.Kind, ID: v.ID, Data: thread.MustJSON(cp)})
	}
}

// TestAuditFindsDamage: each kind of damage has a name of its own.
func TestAuditFindsDamage(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		do   damage
	}{
		"a head that is not JSON": {"head_unreadable",
			func(_ *testing.T, _ *everything, c *store.Commit) { c.State = []byte("{") }},
		"a negative counter":       {"head_invalid", changeState(func(st *thread.State) { st.Iteration = -1 })},
		"a leaf that is not there": {"leaf_missing", changeState(func(st *thread.State) { st.Leaf = "nope" })},
		"a wrong count":            {"count_wrong", changeState(func(st *thread.State) { st.Count = 99 })},
		"a shared state that is not there": {"state_missing",
			changeState(func(st *thread.State) { st.Shared = "nope" })},
		"a run that is not there": {"run_missing",
			changeState(func(st *thread.State) { running(st, "nope"); _ = st.End(holdfast.OutcomeSuccess) })},
		"an open call that has a result": {"open_call_unknown",
			changeState(func(st *thread.State) { st.Calls = []thread.Call{{ID: "nope"}} })},
		"running without an owner": {"owner_missing", changeState(func(st *thread.State) { running(st, st.Run()) })},
		"running at another record": {"boundary_wrong", changeState(func(st *thread.State) {
			running(st, st.Run())
			st.Boundary = store.Cursor{Number: 2, Tag: "zz"}
		})},
		"an owner of an idle thread": {"owner_left",
			func(_ *testing.T, _ *everything, c *store.Commit) { c.Process = "p1" }},
		"a hole": {"message_hole", forget(2)},
		"a message that is not one": {"message_unreadable", func(_ *testing.T, _ *everything, c *store.Commit) {
			c.Messages = []store.Message{{ID: "bad", Data: []byte("[]")}}
		}},
		"a result of nothing": {"result_without_call",
			says(holdfast.Message{ID: "m1", Role: holdfast.RoleTool, CallID: "nope"})},
		"a call without a result": {"call_without_result", says(holdfast.Message{
			ID: "m1", Role: holdfast.RoleAssistant,
			Calls: []holdfast.ToolCall{{ID: "c1", Name: "look", Arguments: json.RawMessage("{}")}},
		})},
		"a second result": {"call_answered_twice", func(t *testing.T, all *everything, c *store.Commit) {
			m := looptest.Must(agui.DecodeMessage(all.messages[2].Data))(t)
			says(holdfast.Message{ID: "m1", Role: holdfast.RoleTool, CallID: m.ToolCallID})(t, all, c)
		}},
		"a change of nothing":      {"activity_unknown", changes("nope", "[]")},
		"a change that is not one": {"activity_damaged", changes("a1", `[{"op":"remove","path":"/none"}]`)},
		"a change that copies":     {"activity_damaged", changes("a1", `[{"op":"copy","from":"/n","path":"/m"}]`)},
		"a queued message that is not one": {"message_unreadable",
			changeState(func(st *thread.State) { st.Queued = []json.RawMessage{[]byte("[]")} })},
		"an unreadable checkpoint": {"checkpoint_unreadable", put(store.KindCheckpoint, "000000000002", "{")},
		"a checkpoint with another's name": {"checkpoint_misnamed",
			spoil(1, func(cp *thread.Checkpoint) { cp.ID = "000000000001" })},
		"the newest checkpoint lost":   {"checkpoint_missing", drop(store.KindCheckpoint, -1)},
		"a checkpoint in between lost": {"checkpoint_parent_missing", drop(store.KindCheckpoint, 1)},
		"a parent that is younger": {"checkpoint_order",
			spoil(1, func(cp *thread.Checkpoint) { cp.Parent = "000000000003" })},
		"a checkpoint's leaf lost": {"leaf_missing",
			spoil(1, func(cp *thread.Checkpoint) { cp.State.Leaf = "nope" })},
		"a checkpoint's state lost": {"state_missing",
			spoil(1, func(cp *thread.Checkpoint) { cp.State.Shared = "nope" })},
		"the shared state lost": {"state_missing", drop(store.KindBlob, 0)},
		"a shared state that is no JSON": {"state_unreadable", func(t *testing.T, all *everything, c *store.Commit) {
			put(store.KindBlob, all.values[store.KindBlob][0].ID, "{")(t, all, c)
		}},
		"a run by another name": {"run_misnamed", put(store.KindRun, "r0", `{"dataFormat":1,"id":"r9"}`)},
		"the run lost":          {"run_missing", drop(store.KindRun, 0)},
		"a schema of another name": {"schema_wrong",
			put(store.KindBlob, thread.SchemaBlob("AbCdEfG"), `{"stateNames":["a.b"]}`)},
		"a schema that is not one":   {"schema_unreadable", put(store.KindBlob, thread.SchemaBlob("AbCdEfG"), "{")},
		"an unreadable run":          {"run_unreadable", put(store.KindRun, "r0", "{")},
		"an unreadable outcome":      {"outcome_unreadable", put(store.KindOutcome, "r1", "{")},
		"an intent of nothing":       {"intent_unknown_call", put(store.KindIntent, "nope", `{"dataFormat":1}`)},
		"an unreadable intent":       {"intent_unreadable", put(store.KindIntent, "nope", "{")},
		"a pending write of nothing": {"pending_unknown_call", put(store.KindPending, "nope", `{"dataFormat":1}`)},
		"a pending write without its message": {"pending_message_missing",
			func(t *testing.T, all *everything, c *store.Commit) {
				m := looptest.Must(agui.DecodeMessage(all.messages[2].Data))(t)
				put(store.KindPending, m.ToolCallID,
					fmt.Sprintf(`{"dataFormat":1,"callId":%q,"messageId":"nope"}`, m.ToolCallID))(t, all, c)
			}},
		"an unreadable pending write":   {"pending_unreadable", put(store.KindPending, "nope", "{")},
		"an unreadable end of a call":   {"outside_unreadable", put(store.KindOutside, "nope", "{")},
		"the end of a call of nothing":  {"outside_unknown_call", put(store.KindOutside, "nope", `{"dataFormat":1}`)},
		"an unreadable recorded result": {"reuse_unreadable", put(store.KindReuse, "nope", "{")},
		"an event nobody knows": {"event_unreadable", func(_ *testing.T, _ *everything, c *store.Commit) {
			c.Records = [][]byte{[]byte(`{"type":"NONSENSE"}`)}
		}},
		"an event after the end": {"stream_illegal", appends(agui.TextMessageEnd{MessageID: "m"})},
		"a large result too early": {"stream_illegal",
			appends(agui.RunStarted{ThreadID: "t", RunID: "r2"},
				agui.ToolCallStart{ToolCallID: "c", ToolCallName: "look"},
				agui.ToolCallResultRef{MessageID: "m", ToolCallID: "c", Ref: "m"}, agui.ToolCallEnd{ToolCallID: "c"},
				agui.RunFinished{ThreadID: "t", RunID: "r2"})},
		"a log cut at its beginning": {"log_gap", func(_ *testing.T, all *everything, c *store.Commit) { c.Trim = 3 }},
		"a log that is gone": {"log_missing",
			func(_ *testing.T, all *everything, c *store.Commit) { c.Trim = all.head.Next - 1 }},
		"another fence": {"log_tag",
			func(_ *testing.T, _ *everything, c *store.Commit) { c.Fence.Nonce = "other" }},
		"an unreadable archive": {"archive_unreadable", put(store.KindLog, "r1", "{")},
		"an archive of nothing": {"archive_damaged", put(store.KindLog, "r1", `{"dataFormat":1,"run":"r1"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			store, e := finishedThread(t)
			wantProblem(t, spoiled(t, e, store, "t", c.do), c.want)
		})
	}
}

// spoiled damages a thread and audits it.
func spoiled(t *testing.T, e *looptest.Engine, db store.Store, id string, do damage) []Problem {
	t.Helper()
	all := looptest.Must(readAll(t.Context(), db, looptest.KeyOf(id)))(t)
	commit := &store.Commit{
		Key:       all.key,
		ID:        testID("c"),
		Expect:    all.head.Position(),
		User:      all.head.User,
		Fence:     all.head.Fence,
		Process:   all.head.Process,
		UpdatedAt: all.head.UpdatedAt,
	}
	do(t, all, commit)
	if err := db.Commit(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	return looptest.Must(Check(t.Context(), db, looptest.KeyOf(id)))(t)
}

func wantProblem(t *testing.T, problems []Problem, want string) {
	t.Helper()
	if !slices.ContainsFunc(problems, func(p Problem) bool {
		return p.What == want && p.Detail != "" && p.Key.Thread == "t"
	}) {
		t.Errorf("want %s, got %v", want, problems)
	}
}

// TestAuditFindsDamagedArchives: what is stored apart is checked against the runs and
// the messages.
func TestAuditFindsDamagedArchives(t *testing.T) {
	change := func(change func(*thread.ArchivedLog)) damage {
		return func(t *testing.T, all *everything, c *store.Commit) {
			v := all.values[store.KindLog][0]
			a := &thread.ArchivedLog{}
			if err := thread.Decode(v.Data, a); err != nil {
				t.Fatal(err)
			}
			change(a)
			c.Put = append(c.Put, store.Value{Kind: v.Kind, ID: v.ID, Data: thread.MustJSON(a)})
		}
	}
	for name, c := range map[string]struct {
		want string
		do   damage
	}{
		"lost": {"log_missing", drop(store.KindLog, 0)},
		"too short": {"archive_gap", change(func(a *thread.ArchivedLog) {
			a.Entries = slices.DeleteFunc(a.Entries, func(n thread.LogEntry) bool { return n.Kind != "" })
		})},
		"moved":             {"archive_gap", change(func(a *thread.ArchivedLog) { a.First, a.Tags[0].From = 7, 7 })},
		"of another run":    {"archive_damaged", change(func(a *thread.ArchivedLog) { a.Run = "r7" })},
		"longer than text":  {"archive_damaged", change(func(a *thread.ArchivedLog) { lengths(a)[0] = 1 << 20 })},
		"a negative length": {"archive_damaged", change(func(a *thread.ArchivedLog) { lengths(a)[0] = -1 })},
		"unknown event": {"archive_damaged", change(func(a *thread.ArchivedLog) {
			a.Entries[0] = thread.LogEntry{Data: json.RawMessage(`{"type":"NONSENSE"}`)}
		})},
		"not a stream": {"archive_damaged", change(func(a *thread.ArchivedLog) { slices.Reverse(a.Entries) })},
	} {
		t.Run(name, func(t *testing.T) {
			store, e := finishedThread(t)
			if err := e.Keeper.Archive(t.Context(), looptest.KeyOf("t")); err != nil {
				t.Fatal(err)
			}
			wantSound(t, store, "t")
			wantProblem(t, spoiled(t, e, store, "t", c.do), c.want)
		})
	}
}

// lengths are those of an archive's first deltas.
func lengths(a *thread.ArchivedLog) []int {
	i := slices.IndexFunc(a.Entries, func(n thread.LogEntry) bool { return len(n.Lengths) > 0 })
	return a.Entries[i].Lengths
}

// TestAuditFindsACycle: a message that comes before itself does not hang the audit.
func TestAuditFindsACycle(t *testing.T) {
	db, e := finishedThread(t)
	all := looptest.Must(readAll(t.Context(), db, looptest.KeyOf("t")))(t)
	first := all.messages[0]
	wantProblem(t, spoiled(t, e, db, "t", forget(0)), "message_hole")
	first.Parent = all.messages[3].ID
	wantProblem(t, spoiled(t, e, db, "t", func(_ *testing.T, _ *everything, c *store.Commit) {
		c.Messages = []store.Message{first}
	}), "message_cycle")
}

// TestAuditOfANewerVersion: it is one problem, wherever the newer value is.
func TestAuditOfANewerVersion(t *testing.T) {
	for name, do := range map[string]damage{
		"head":       changeState(func(st *thread.State) { st.Format = thread.Format + 1 }),
		"checkpoint": spoil(0, func(cp *thread.Checkpoint) { cp.Format = thread.Format + 1 }),
		"run":        put(store.KindRun, "r0", fmt.Sprintf(`{"dataFormat":%d}`, thread.Format+1)),
	} {
		t.Run(name, func(t *testing.T) {
			db, e := finishedThread(t)
			problems := spoiled(t, e, db, "t", func(t *testing.T, all *everything, c *store.Commit) {
				drop(store.KindBlob, 0)(t, all, c) // is not looked for
				do(t, all, c)
			})
			if len(problems) != 1 || problems[0].What != codes.VersionTooNew {
				t.Errorf("got %v", problems)
			}
		})
	}
}

// restless is a store whose threads change with every look.
type restless struct{ store.Store }

func (r restless) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	h, err := r.Store.Head(ctx, key)
	if err == nil {
		h.ETag = fmt.Sprint("c", looptest.Serial.Add(1))
	}
	return h, err
}

func TestAuditOfWhatIsNotThere(t *testing.T) {
	db, _ := finishedThread(t)
	if _, err := Check(t.Context(), db, looptest.KeyOf("nope")); !errors.Is(err, store.ErrNotFound) ||
		!strings.Contains(err.Error(), "acme/nope") {
		t.Errorf("an unknown thread: %v", err)
	}
	if _, err := Check(t.Context(), restless{db}, looptest.KeyOf("t")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a thread that keeps changing: %v", err)
	}
}

// changes adds an activity, a1, a patch of it, and a patch of an activity.
func changes(of, patch string) func(t *testing.T, all *everything, c *store.Commit) {
	return func(_ *testing.T, all *everything, c *store.Commit) {
		parent := all.messages[len(all.messages)-1].ID
		for _, m := range []agui.Message{
			thread.NewActivity("a1", thread.ActivityKey{Type: "x", Name: "n"}, json.RawMessage(`{"n":1}`)),
			(&thread.ActivityChange{Of: "a1", Patch: json.RawMessage(`[{"op":"add","path":"/o","value":2}]`)}).
				Message("a2", "x"),
			(&thread.ActivityChange{Of: of, Patch: json.RawMessage(patch),
				Content: json.RawMessage("{}")}).Message("a3", "x"),
		} {
			c.Messages = append(c.Messages, store.Message{ID: m.ID, Parent: parent, Data: m.AppendJSON(nil)})
			parent = m.ID
		}
	}
}

// TestActivitiesThatChange: changes that follow their activity are sound, in every branch.
func TestActivitiesThatChange(t *testing.T) {
	t.Parallel()
	a := &audit{everything: &everything{}, tree: map[string]*auditMessage{}}
	add := func(m agui.Message, parent string) {
		a.messages = append(a.messages, store.Message{ID: m.ID, Parent: parent})
		a.tree[m.ID] = &auditMessage{Message: m, parent: parent}
	}
	change := func(id, parent, patch string) {
		add((&thread.ActivityChange{Of: "a", Patch: json.RawMessage(patch)}).Message(id, "x"), parent)
	}
	add(thread.NewActivity("a", thread.ActivityKey{Type: "x", Name: "n"}, json.RawMessage(`{"n":1}`)), "")
	change("b", "a", `[{"op":"add","path":"/o","value":{}}]`)
	change("c", "b", `[{"op":"add","path":"/o/p","value":1}]`)
	change("d", "a", `[{"op":"replace","path":"/n","value":2}]`)
	change("e", "c", `[{"op":"remove","path":"/o/p"}]`)
	a.activities()
	if len(a.problems) > 0 {
		t.Errorf("%+v", a.problems)
	}
	change("f", "d", `[{"op":"remove","path":"/o"}]`)
	a.activities()
	if len(a.problems) != 1 || a.problems[0].What != "activity_damaged" {
		t.Errorf("%+v", a.problems)
	}
}
