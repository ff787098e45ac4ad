package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

func testID(prefix string) string { return fmt.Sprintf("%s%08d", prefix, looptest.Serial.Add(1)) }

// written is a document as text.
func written(t *testing.T, store store.Store, key store.ThreadKey) string {
	t.Helper()
	var text bytes.Buffer
	if err := looptest.Must(Export(t.Context(), store, key))(t).Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// copied imports a document's text.
func copied(t *testing.T, store store.Store, key store.ThreadKey, text string) error {
	t.Helper()
	d, err := ReadDocument(strings.NewReader(text))
	if err != nil {
		return err
	}
	return Import(t.Context(), store, key, d, time.Now(), testID)
}

// unwritten is a store that nothing is to be written to, not even what is refused.
type unwritten struct {
	*memstore.Store
	t *testing.T
}

func (u unwritten) Commit(ctx context.Context, c *store.Commit) error {
	u.t.Errorf("a commit to thread %s", c.Key)
	return u.Store.Commit(ctx, c)
}

// TestRoundTrip: a thread that went through other stores is the same.
func TestRoundTrip(t *testing.T) {
	db, e := finishedThread(t)
	all := looptest.Checkpoints(t, e, "t")
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: all[1].ID, Thread: "fork", ReuseResults: true}))(t)
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: all[1].ID, Thread: "went on"}))(t)
	looptest.Resumed(t, e, "went on", "r2")
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Thread: "archived"}))(t)
	for n := range 2 {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("archived", fmt.Sprint("q", n),
				looptest.UserSays(fmt.Sprint("q", n), "<more> & \u2028 🙂")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		if n == 0 {
			if err := e.Keeper.Archive(t.Context(), looptest.KeyOf("archived")); err != nil {
				t.Fatal(err)
			}
		}
	}
	looptest.Must(e.Keeper.Mark(t.Context(), looptest.Alice, "went on",
		threads.Mark{State: json.RawMessage(`{"base64":"aGk="}`)}))(t)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "archived", threads.Travel{Message: "u1"}))(t)
	for _, id := range []string{"t", "fork", "went on", "archived"} {
		t.Run(id, func(t *testing.T) {
			before := written(t, db, looptest.KeyOf(id))
			embedded := looptest.Must(filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{}))(t)
			defer embedded.Close()
			if err := copied(t, embedded, looptest.KeyOf(id), before); err != nil {
				t.Fatal(err)
			}
			back := memstore.New()
			if err := copied(t, back, looptest.KeyOf(id), written(t, embedded, looptest.KeyOf(id))); err != nil {
				t.Fatal(err)
			}
			if after := written(t, back, looptest.KeyOf(id)); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			wantSound(t, back, id)
			if children := looptest.Must(back.Children(t.Context(), looptest.KeyOf("t"), "", 10))(t); id != "t" &&
				len(children) != 1 {
				t.Errorf("the copy is not a child of t: %v", children)
			}
			if err := copied(t, unwritten{back, t}, looptest.KeyOf(id), before); !errors.Is(err, store.ErrConflict) ||
				!strings.Contains(err.Error(), "there is a thread") {
				t.Errorf("imported twice: %v", err)
			}
		})
	}
}

// TestCursorsSurvive: a watcher that has seen a part of a thread gets the rest from the copy,
// archived or not.
func TestCursorsSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, nil, looptest.Wordy())
		all := map[string][]agui.Frame{}
		for _, run := range []string{"r1", "r2"} {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", run, looptest.UserSays(run+"u", "go")))
			all[run], _ = looptest.FramesOf(t, reply, err)
			if run == "r1" {
				time.Sleep(2 * time.Minute) // it is archived
			}
		}
		other := memstore.New()
		if err := copied(t, other, looptest.KeyOf("t"), written(t, db, looptest.KeyOf("t"))); err != nil {
			t.Fatal(err)
		}
		two := looptest.Start(t, other, nil, looptest.Wordy())
		for run, frames := range all {
			for _, f := range frames[:len(frames)-1] {
				after := looptest.Must(store.ParseCursor(f.ID))(t)
				want, _ := looptest.FramesOf(t,
					looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", run, after, agui.DialectV1))(t), nil)
				got, _ := looptest.FramesOf(t,
					looptest.Must(two.Owner.Events(t.Context(), looptest.Alice, "t", run, after, agui.DialectV1))(t),
					nil)
				if !slices.EqualFunc(got, want, func(a, b agui.Frame) bool {
					return a.ID == b.ID && bytes.Equal(a.Data, b.Data)
				}) {
					t.Fatalf("after %s of %s the copy shows %d frames, want %d", f.ID, run, len(got), len(want))
				}
			}
		}
		reply, err := two.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r3", looptest.UserSays("u9", "and again")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		wantSound(t, other, "t")
	})
}

// TestImportOfARunningThread: the copy is stopped and continues when asked to, with the same
// idempotency keys, whatever its name; a finished call does not run again.
func TestImportOfARunningThread(t *testing.T) {
	for _, name := range []string{"t", "copy"} {
		synctest.Test(t, func(t *testing.T) {
			j := &looptest.Notebook{}
			agent := func(hangs bool) holdfast.Agent {
				quick := looptest.Tool("quick", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
					j.Note("quick")
					return "quick", nil
				})
				slow := looptest.Tool("slow", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
					j.Note("slow " + holdfast.CallFrom(ctx).Key)
					if hangs {
						<-ctx.Done()
					}
					return "slow", ctx.Err()
				})
				return holdfast.Agent{
					Name:  "a",
					Tools: []holdfast.Tool{quick, slow},
					Model: looptest.Slowly([]holdfast.Delta{
						{
							Call: &holdfast.CallDelta{Index: 0, Name: "quick", Arguments: "{}"},
						},
						{Call: &holdfast.CallDelta{Index: 1, Name: "slow", Arguments: "{}"}},
						{Finish: holdfast.FinishToolCalls},
					}, []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}}),
				}
			}
			db := memstore.New()
			e := looptest.Start(t, db, nil, agent(true))
			looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
			looptest.WaitFor(t, func() bool {
				return len(looptest.Must(Inspect(t.Context(), db, looptest.KeyOf("t"), ""))(t).Pending) == 1
			})
			did := j.Take()
			other := memstore.New()
			if err := copied(t, other, looptest.KeyOf(name), written(t, db, looptest.KeyOf("t"))); err != nil {
				t.Fatal(err)
			}
			wantSound(t, other, name)
			two := looptest.Start(t, other, nil, agent(false))
			info := looptest.Must(two.Keeper.Thread(t.Context(), looptest.Alice, name))(t)
			if info.Status != threads.StatusStopped || info.Code != codes.CutOff {
				t.Fatalf("the copy is %+v", info)
			}
			looptest.Succeeded(t, looptest.Resumed(t, two, name, "r2"))
			looptest.WantTexts(t, two, name, "user:go", "assistant:", "tool:quick", "tool:slow", "assistant:done")
			slices.Sort(did)
			if again := j.Take(); len(again) != 1 || again[0] != did[1] {
				t.Errorf("the copy did %q, the thread had done %q", again, did)
			}
			wantSound(t, other, name)
			for _, run := range []string{"r1", "r2"} {
				events := looptest.Collect(t,
					looptest.Must(two.Owner.Events(t.Context(), looptest.Alice, name, run, store.Cursor{},
						agui.DialectV1))(t), nil)
				if started := events[0].(agui.RunStarted); started.ThreadID != name {
					t.Errorf("run %s of %s says it is of thread %s", run, name, started.ThreadID)
				}
			}
		})
	}
}

// TestImportedCallIDs: the copy of a thread whose model was in the middle of a call does
// not use the id that the log shows for another one.
func TestImportedCallIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := holdfast.Agent{
			Name: "a",
			Tools: []holdfast.Tool{
				looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) {
					return "pong",
						nil
				}),
			},
			Model: looptest.Slowly([]holdfast.Delta{
				{
					Call: &holdfast.CallDelta{ID: "call_0", Name: "ping", Arguments: "{"},
				},
				{Call: &holdfast.CallDelta{Arguments: " "}},
				{Call: &holdfast.CallDelta{Arguments: "}"}},
				{Finish: holdfast.FinishToolCalls},
			}, []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}}),
		}
		db, other := memstore.New(), memstore.New()
		e := looptest.Start(t, db, nil, agent)
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(25 * time.Millisecond)
		synctest.Wait()
		if err := copied(t, other, looptest.KeyOf("t"), written(t, db, looptest.KeyOf("t"))); err != nil {
			t.Fatal(err)
		}
		two := looptest.Start(t, other, nil, agent)
		looptest.Succeeded(t, looptest.Resumed(t, two, "t", "r2"))
		var shown []string
		for _, run := range []string{"r1", "r2"} {
			for _, ev := range looptest.Collect(t,
				looptest.Must(two.Owner.Events(t.Context(), looptest.Alice, "t", run, store.Cursor{},
					agui.DialectV1))(t), nil) {
				if start, ok := ev.(agui.ToolCallStart); ok {
					shown = append(shown, start.ToolCallID)
				}
			}
		}
		if len(shown) != 2 || shown[0] != "call_0" || shown[1] == "call_0" {
			t.Errorf("the calls %q were shown", shown)
		}
	})
}

// TestDamagedDocuments: a document that cannot be imported says why, and leaves nothing.
func TestDamagedDocuments(t *testing.T) {
	db, _ := finishedThread(t)
	good := written(t, db, looptest.KeyOf("t"))
	for name, c := range map[string]struct {
		want string
		text string
	}{
		"not JSON":         {"cannot be imported", good[:len(good)/2]},
		"something else":   {"not an exported thread", `{"agents":[]}`},
		"two documents":    {"something follows its end", good + good},
		"a newer document": {"reads up to 1", strings.Replace(good, `"version": 1`, `"version": 2`, 1)},
		"no head": {"its version, thread or head is missing", `{"kind":"holdfast.thread",` +
			`"version":1,"thread":"t"}`},
		"an unknown kind": {"is not known", strings.Replace(good, `"checkpoint": [`, `"secret": [`, 1)},
		"a newer thread": {"newer version",
			strings.Replace(good, fmt.Sprintf(`"dataFormat": %d`, thread.Format),
				fmt.Sprintf(`"dataFormat": %d`, thread.Format+1), 1)},
		"a message less": {"message_hole",
			without(t, good, func(d *Document) { d.Messages = slices.Delete(d.Messages, 2, 3) })},
		"messages in a mess": {"import thread", without(t, good, func(d *Document) { slices.Reverse(d.Messages) })},
		"a message twice": {"import thread",
			without(t, good, func(d *Document) { d.Messages = append(d.Messages, d.Messages[0]) })},
		"a record less": {"log_gap",
			without(t, good, func(d *Document) { d.Records = slices.Delete(d.Records, 3, 4) })},
		"a later end":    {"log_gap", without(t, good, func(d *Document) { d.Head.Next += 1 << 40 })},
		"an endless log": {"50000000 is the most", without(t, good, endless)},
		"a checkpoint less": {"checkpoint_missing",
			without(t, good, func(d *Document) { d.Values[store.KindCheckpoint] = nil })},
		"a cursor like no ID": {"cannot be imported", strings.Replace(good, `"cursor": "1-`, `"cursor": "one-`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			other := memstore.New()
			err := copied(t, other, looptest.KeyOf("t"), c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := other.Head(t.Context(), looptest.KeyOf("t")); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
	if _, err := Export(t.Context(), db, looptest.KeyOf("nope")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown thread: %v", err)
	}
}

// without is a document's text with a change.
func without(t *testing.T, text string, change func(*Document)) string {
	t.Helper()
	d := looptest.Must(ReadDocument(strings.NewReader(text)))(t)
	change(d)
	var out bytes.Buffer
	if err := d.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// endless moves the whole log to numbers that no thread has.
func endless(d *Document) {
	const far = 1 << 50
	for i := range d.Records {
		d.Records[i].Cursor.Number += far
	}
	d.Head.Next += far
	var rec thread.Run
	_ = json.Unmarshal(d.Values[store.KindRun][0].Data, &rec)
	rec.After = store.Cursor{Number: far, Tag: d.Records[0].Cursor.Tag}
	d.Values[store.KindRun][0].Data = thread.MustJSON(rec)
}

// failing is a store that cannot make the nth commit, whether it says so or not.
type failing struct {
	store.Store
	left int
	done bool // but makes it
}

func (f *failing) Commit(ctx context.Context, c *store.Commit) error {
	if f.left--; f.left != 0 {
		return f.Store.Commit(ctx, c)
	}
	if f.done {
		if err := f.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	return looptest.ErrUnreachable
}

// TestImportOrNothing: an import that fails in the middle leaves nothing.
func TestImportOrNothing(t *testing.T) {
	db, e := finishedThread(t)
	if err := e.Keeper.Archive(t.Context(), looptest.KeyOf("t")); err != nil { // now the log begins late
		t.Fatal(err)
	}
	text := written(t, db, looptest.KeyOf("t"))
	for n := range 10 {
		for _, done := range []bool{true, false} {
			other := &failing{Store: memstore.New(), left: n, done: done}
			if err := copied(t, other, looptest.KeyOf("t"), text); err == nil {
				if n > 0 && n < 3 {
					t.Errorf("commit %d failed, but the import did not", n)
				}
				continue
			} else if !errors.Is(err, looptest.ErrUnreachable) {
				t.Error(err)
			}
			if _, err := other.Head(t.Context(), looptest.KeyOf("t")); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("after %d commits something is left: %v", n, err)
			}
		}
	}
}

// FuzzBytes: whatever a store holds is the same after it was written and read.
func FuzzBytes(f *testing.F) {
	for _, s := range []string{"", "null", `{"a":1}`, `{"base64":"aGk="}`, `{"base64":"aGk=","b":1}`, "\xff",
		"\"\xff\"", `"<&>"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		if err := (&Document{State: b}).Write(&out); err != nil {
			t.Fatal(err)
		}
		var back Document
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatalf("%v in %s", err, out.Bytes())
		}
		want := b
		if json.Valid(b) && !bytes.Equal(back.State, b) {
			want = nil
			var compact bytes.Buffer // blanks are left out
			if err := json.Compact(&compact, b); err == nil {
				want = compact.Bytes()
			}
		}
		if !bytes.Equal(back.State, want) {
			t.Errorf("%q came back as %q", b, back.State)
		}
	})
}
