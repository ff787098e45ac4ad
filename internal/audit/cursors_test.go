package audit

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The answer to each kind of cursor, on each route that takes one, whatever has become of the
// run meanwhile. The answers are one table, in testdata/cursors.txt, which is the same for all
// stores; docs/protocol.md sums it up. Besides, each stream is checked: after what its watcher
// has seen it is legal, it ends in what the thread has, and it shows nothing of another
// thread.

var update = flag.Bool("update", false, "write the golden files anew")

// cursorStores are the stores: each opens as often as there are replicas.
var cursorStores = map[string]func(t *testing.T) (open func() store.Store){
	"memory": func(*testing.T) func() store.Store { db := memstore.New(); return func() store.Store { return db } },
	"file": func(t *testing.T) func() store.Store {
		db := looptest.Must(filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{}))(t)
		t.Cleanup(func() { _ = db.Close() })
		return func() store.Store { return db }
	},
	"redis": func(t *testing.T) func() store.Store {
		url := redistest.Start(t).URL()
		return func() store.Store {
			db := looptest.Must(redisstore.Open(t.Context(), url, redisstore.Options{}))(t)
			t.Cleanup(func() { _ = db.Close() })
			return db
		}
	},
}

func TestCursorAnswers(t *testing.T) {
	for name, stored := range cursorStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCursorScene(t, stored(t))
			s.play()
			const golden = "testdata/cursors.txt"
			if *update && name == "memory" {
				if err := os.WriteFile(golden, []byte(s.table.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || s.table.String() != string(want) {
				t.Errorf("%v, got\n%s", err, s.table.String())
			}
		})
	}
}

// cursorScene is the life of thread t, which has the runs a, b and c. Cursors are asked for
// run b.
type cursorScene struct {
	*testing.T
	open        func() store.Store
	here, there *looptest.Engine // the replica that runs b, and another
	step        chan struct{}    // each lets the model say one more word
	seen        map[string][]agui.Frame
	kinds       []cursorKind
	posted      int
	table       strings.Builder
}

// cursorKind is a kind of cursor.
type cursorKind struct {
	name   string
	cursor store.Cursor
	seen   []agui.Frame // what its watcher has seen of the cursor's run
}

// newCursorScene starts two replicas.
func newCursorScene(t *testing.T, open func() store.Store) *cursorScene {
	s := &cursorScene{T: t, open: open, step: make(chan struct{}), seen: map[string][]agui.Frame{}}
	s.here, s.there = s.replica(), s.replica()
	return s
}

// replica starts an engine whose model repeats what it is told, a word at a time.
func (s *cursorScene) replica() *looptest.Engine {
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for word := range strings.FieldsSeq(req.Messages[len(req.Messages)-1].Text) {
				select {
				case <-s.step:
				case <-ctx.Done():
					return
				}
				if !yield(holdfast.Delta{Text: word + " "}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	})
	return looptest.Start(s.T, s.open(), func(c *looptest.Config) {
		c.ArchiveAfter, c.Lease = time.Hour, time.Minute // nobody is taken for dead
		c.NewID = func(prefix string) string {           // whose first characters differ, as those of tags do
			id := fmt.Appendf(nil, "%08d", looptest.Serial.Add(1))
			slices.Reverse(id)
			return prefix + string(id)
		}
	}, holdfast.Agent{Name: "a", Model: model})
}

// begin starts a run and returns what reads it until its model has said that many words more.
func (s *cursorScene) begin(e *looptest.Engine, thread, run, text string) (read func(words int)) {
	reply := looptest.Must(e.Owner.Post(s.Context(), looptest.Alice, "",
		looptest.RunInput(thread, run, looptest.UserSays("u"+run, text))))(s.T)
	next, stop := iter.Pull2(reply.Whole())
	s.Cleanup(stop)
	name := thread + "/" + run
	return func(words int) {
		for ; words > 0; words-- {
			s.step <- struct{}{}
			for said := false; !said; {
				frames, err, more := next()
				if err != nil || !more {
					s.Fatal(name, err, more)
				}
				s.seen[name] = append(s.seen[name], frames...)
				said = slices.ContainsFunc(frames, func(f agui.Frame) bool {
					return agui.TypeOf(f.Data) == agui.TypeTextMessageContent
				})
			}
		}
		if words < 0 {
			for frames, err, more := next(); more; frames, err, more = next() {
				if err != nil {
					s.Fatal(name, err)
				}
				s.seen[name] = append(s.seen[name], frames...)
			}
		}
	}
}

const theRest = -1

// run runs one run to its end.
func (s *cursorScene) run(e *looptest.Engine, thread, run, text string) {
	read := s.begin(e, thread, run, text)
	read(len(strings.Fields(text)))
	read(theRest)
}

// play has the thread live, and asks at each stage.
func (s *cursorScene) play() {
	s.run(s.here, "foreign", "a", "secret secret")
	s.run(s.here, "foreign", "b", "secret secret secret")
	s.run(s.here, "t", "a", "alpha beta")
	s.must(s.here.Keeper.Archive(s.Context(), looptest.KeyOf("t")))

	read := s.begin(s.here, "t", "b", "gamma delta epsilon")
	read(2)
	s.collect()
	here, there := s.ask(s.here, looptest.Alice, "t"), s.ask(s.there, looptest.Alice, "t")
	read(1)
	read(theRest)
	s.show("b runs here", here)
	s.show("b runs at another replica", there)

	s.collect()
	s.show("b has ended", s.ask(s.here, looptest.Alice, "t"))
	s.show("b has ended, at another replica", s.ask(s.there, looptest.Alice, "t"))
	s.must(s.here.Keeper.Archive(s.Context(), looptest.KeyOf("t")))
	s.show("b is archived", s.ask(s.there, looptest.Alice, "t"))

	looptest.Must(s.here.Keeper.Fork(s.Context(), looptest.Alice, "t", threads.Travel{Thread: "fork"}))(s.T)
	s.show("in a fork", s.ask(s.there, looptest.Alice, "fork"))
	s.run(s.here, "fork", "d", "eta theta")
	s.show("in a fork that has run", s.ask(s.there, looptest.Alice, "fork"))
	s.copies()

	read = s.begin(s.here, "t", "c", "zeta omega")
	read(1)
	s.kinds = append(s.kinds, cursorKind{name: "of a later run", cursor: s.cursor("t/c", 1), seen: s.seen["t/c"][:1]})
	here, there = s.ask(s.here, looptest.Alice, "t"), s.ask(s.there, looptest.Alice, "t")
	read(1)
	read(theRest)
	s.show("a later run runs here", here)
	s.show("a later run runs at another replica", there)
	s.show("a later run has ended", s.ask(s.there, looptest.Alice, "t"))
	s.must(s.here.Keeper.Archive(s.Context(), looptest.KeyOf("t")))
	s.show("a later run is archived", s.ask(s.there, looptest.Alice, "t"))

	all := looptest.Checkpoints(s.T, s.here, "t")
	at := slices.IndexFunc(all, func(c threads.Checkpoint) bool {
		return c.Metadata.Source == "input" && c.ID > all[1].ID
	}) - 1
	looptest.Must(s.here.Keeper.Rewind(s.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: all[at].ID}))(s.T)
	s.show("rewound to before b", s.ask(s.there, looptest.Alice, "t"))
	looptest.Must(s.here.Keeper.Prune(s.Context(), looptest.Alice, "t", "", 1, false))(s.T)
	s.show("rewound and pruned", s.ask(s.there, looptest.Alice, "t"))
	s.takeover()
}

// copies asks imported copies.
func (s *cursorScene) copies() {
	text := written(s.T, s.here.Store, looptest.KeyOf("t"))
	for _, to := range []struct{ what, tenant, thread string }{
		{"imported under its name", looptest.Alice.Tenant, "t"},
		{"imported under another name", looptest.Alice.Tenant, "copy"},
		{"imported for another tenant", "umbrella", "t"},
	} {
		var kind store.Store = memstore.New() // and so, for most, of another kind
		if _, same := s.here.Store.(*memstore.Store); same {
			kind = cursorStores["file"](s.T)()
		}
		s.must(copied(s.T, kind, store.ThreadKey{Tenant: to.tenant, Thread: to.thread}, text))
		e := looptest.Start(s.T, kind, nil, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "no"})})
		s.show(to.what, s.ask(e, holdfast.Principal{Tenant: to.tenant, User: looptest.Alice.User}, to.thread))
	}
}

// takeover asks after another replica has taken a run over, in the middle of a text.
func (s *cursorScene) takeover() {
	leaving := s.replica()
	s.run(s.here, "k", "a", "alpha beta")
	read := s.begin(leaving, "k", "b", "gamma delta epsilon")
	read(2)
	s.seen["t/a"], s.seen["t/b"] = s.seen["k/a"], s.seen["k/b"]
	grace, cancel := context.WithCancel(s.Context())
	cancel()
	_ = leaving.Shutdown(grace)
	reply := looptest.Must(s.there.Owner.Events(s.Context(), looptest.Alice, "k", "b",
		s.cursor("k/b", len(s.seen["k/b"])), agui.DialectV1))(s.T)
	go func() {
		for range 3 {
			s.step <- struct{}{}
		}
	}()
	frames, _ := looptest.FramesOf(s.T, reply, nil)
	s.seen["t/b"] = append(s.seen["t/b"], frames...)
	s.kinds = nil
	s.collect()
	s.show("taken over", s.ask(s.here, looptest.Alice, "k"))
}

func (s *cursorScene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// cursor returns that of the nth frame, from 1.
func (s *cursorScene) cursor(run string, n int) store.Cursor {
	return looptest.Must(store.ParseCursor(s.seen[run][n-1].ID))(s.T)
}

// collect collects the kinds of cursors, after what has been seen of run b so far.
func (s *cursorScene) collect() {
	b := s.seen["t/b"]
	middle := slices.IndexFunc(b, func(f agui.Frame) bool {
		return agui.TypeOf(f.Data) == agui.TypeTextMessageContent
	}) + 1
	last := s.cursor("t/b", len(b))
	foreign := s.seen["foreign/b"]
	wrong := s.cursor("t/b", middle)
	for i := range foreign {
		if c := s.cursor("foreign/b", i+1); c.Number == wrong.Number {
			wrong = c
		}
	}
	if wrong == s.cursor("t/b", middle) {
		s.Fatal("the foreign thread has no such record")
	}
	early := s.cursor("foreign/a", 2)
	s.kinds = []cursorKind{
		{name: "none"},
		{name: "of an earlier run", cursor: s.cursor("t/a", 3), seen: s.seen["t/a"][:3]},
		{name: "the end of the run before", cursor: s.cursor("t/a", len(s.seen["t/a"]))},
		{name: "in the middle of a text", cursor: s.cursor("t/b", middle), seen: b[:middle]},
		{name: "the last event", cursor: last, seen: slices.Clone(b)},
		{name: "a number beyond the end", cursor: store.Cursor{Number: last.Number + 1000, Tag: last.Tag}},
		{name: "another thread's", cursor: wrong},
		{name: "another thread's, of an earlier number", cursor: early},
	}
}

// routesOfCursors are the routes that take a cursor.
var routesOfCursors = []string{"events", "stream", "POST again", "POST []"}

// cursorAnswer is what one request got.
type cursorAnswer struct {
	reply *agui.Reply
	err   error
}

// ask asks a replica for each kind on each route. The replies are read by show, so a run can
// go on meanwhile.
func (s *cursorScene) ask(
	e *looptest.Engine, who holdfast.Principal, thread string,
) (show func() (string, []cursorAnswer, []string)) {
	var answers []cursorAnswer
	for _, kind := range s.kinds {
		for _, route := range routesOfCursors {
			var a cursorAnswer
			switch route {
			case "events":
				a.reply, a.err = e.Owner.Events(s.Context(), who, thread, "b", kind.cursor, agui.DialectV1)
			case "stream":
				a.reply, a.err = e.Owner.Events(s.Context(), who, thread, "", kind.cursor, agui.DialectV1)
			case "POST again":
				in := looptest.RunInput(thread, "b", looptest.UserSays("ub", "gamma delta epsilon"))
				in.After = agui.Position(kind.cursor)
				a.reply, a.err = e.Owner.Post(s.Context(), who, "", in)
			case "POST []":
				s.posted++
				in := looptest.RunInput(thread, fmt.Sprint("page-", s.posted))
				in.After = agui.Position(kind.cursor)
				a.reply, a.err = e.Owner.Post(s.Context(), who, "", in)
			}
			answers = append(answers, a)
		}
	}
	return func() (string, []cursorAnswer, []string) {
		messages := looptest.Must(e.Messages(s.Context(), who, thread))(s.T)
		var list []agui.Message
		for _, raw := range messages {
			list = append(list, looptest.Must(agui.DecodeMessage(raw))(s.T))
		}
		return thread, answers, looptest.Reduce([]agui.Event{agui.MessagesSnapshot{Messages: list}})
	}
}

// show reads the answers and adds them to the table.
func (s *cursorScene) show(stage string, ask func() (string, []cursorAnswer, []string)) {
	s.Helper()
	thread, answers, want := ask()
	rows := make([]string, len(answers))
	var wg sync.WaitGroup
	for i, a := range answers {
		kind := s.kinds[i/len(routesOfCursors)]
		wg.Go(func() { rows[i] = s.read(stage, thread, kind, a, want) })
	}
	wg.Wait()
	for i, kind := range s.kinds {
		cells := rows[i*len(routesOfCursors):][:len(routesOfCursors)]
		fmt.Fprintf(&s.table, "| %s | %s | %s |\n", stage, kind.name, strings.Join(cells, " | "))
	}
}

// read reads one answer and says in a word what it is.
func (s *cursorScene) read(stage, thread string, kind cursorKind, a cursorAnswer, want []string) string {
	switch {
	case a.err != nil:
		return looptest.Code(a.err)
	case a.reply == nil:
		return "204"
	}
	frames, events := looptest.FramesOf(s.T, a.reply, nil)
	for _, f := range frames {
		if strings.Contains(string(f.Data), "secret") {
			s.Errorf("%s, %s: another thread's words are shown", stage, kind.name)
		}
	}
	started, begins := events[0].(agui.RunStarted)
	if !begins {
		seen := s.events(kind.seen)
		if f, ok := events[len(events)-1].(agui.RunFinished); ok {
			was := seen[0].(agui.RunStarted) // a POST gets its own run id, and a copy has its own name
			f.RunID, f.ThreadID = was.RunID, was.ThreadID
			events[len(events)-1] = f
		}
		s.legal(stage, kind, append(seen, events...), want)
		return "the rest"
	}
	if frames[0].ID == "" && !slices.Equal(looptest.Reduce(events), want) {
		s.Errorf("%s, %s: shown is %q, the thread has %q", stage, kind.name, looptest.Reduce(events), want)
	}
	s.legal(stage, kind, events, want)
	if started.ThreadID != thread {
		s.Errorf("%s, %s: RUN_STARTED names thread %s", stage, kind.name, started.ThreadID)
	}
	if frames[0].ID != "" {
		return "the whole run"
	}
	var m struct {
		Holdfast struct {
			Resync       bool   `json:"resync"`
			ResyncReason string `json:"resyncReason"`
		} `json:"holdfast"`
	}
	if len(started.Metadata) > 0 {
		s.must(json.Unmarshal(started.Metadata, &m))
	}
	if m.Holdfast.Resync != (m.Holdfast.ResyncReason != "") {
		s.Errorf("%s, %s: %s", stage, kind.name, started.Metadata)
	}
	if m.Holdfast.Resync {
		return m.Holdfast.ResyncReason
	}
	return "snapshots"
}

func (s *cursorScene) events(frames []agui.Frame) []agui.Event {
	var events []agui.Event
	for _, f := range frames {
		events = append(events, looptest.Must(agui.DecodeEvent(f.Data))(s.T))
	}
	return events
}

// legal checks a stream that a client has seen: it is legal, and what it ends in is a part of
// what the thread has.
func (s *cursorScene) legal(stage string, kind cursorKind, events []agui.Event, want []string) {
	s.Helper()
	if err := agui.Verify(slices.Values(events)); err != nil {
		s.Errorf("%s, %s: %v\n%s", stage, kind.name, err, looptest.Show(events))
	}
	got := looptest.Reduce(events)
	if strings.HasPrefix(stage, "rewound") {
		return // the log of b shows what the thread has left
	}
	for _, m := range got {
		if !slices.Contains(want, m) {
			s.Errorf("%s, %s: a client shows %q, the thread has %q\n%s", stage, kind.name, m, want,
				looptest.Show(events))
		}
	}
	if len(got) == 0 {
		s.Errorf("%s, %s: nothing is shown", stage, kind.name)
	}
}

// TestCursorsAfterARewind: a thread that was taken back into the middle of its last run is
// shown as it is to a client that has seen more of it, and the run's own log is what it was.
func TestCursorsAfterARewind(t *testing.T) {
	db, e := finishedThread(t)
	frames, events := looptest.FramesOf(t,
		looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1))(t), nil)
	for _, cp := range looptest.Checkpoints(t, e, "t")[1:3] {
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: cp.ID}))(t)
		want := strings.Join(looptest.Texts(t, e, "t"), " ")
		for n, f := range frames {
			at := looptest.Must(store.ParseCursor(f.ID))(t)
			shown := looptest.Collect(t,
				looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "", at, agui.DialectV1))(t), nil)
			if started := shown[0].(agui.RunStarted); string(started.Metadata) !=
				`{"holdfast":{"resync":true,"resyncReason":"rewound","runId":"r1"}}` {
				t.Errorf("after %s: %s", f.ID, started.Metadata)
			}
			var texts []string
			for _, m := range looptest.Reduce(shown) {
				if !strings.HasPrefix(m, "look") && !strings.HasPrefix(m, "charge") {
					texts = append(texts, m)
				}
			}
			if got := strings.Join(texts, " "); got != want {
				t.Errorf("after %s: shown is %q, want %q", f.ID, got, want)
			}
			rest := looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", at, agui.DialectV1))(t)
			if n == len(frames)-1 {
				if rest != nil {
					t.Error("there is something after the run's end")
				}
				continue
			}
			if _, missing := looptest.FramesOf(t, rest, nil); looptest.Show(missing) != looptest.Show(events[n+1:]) {
				t.Errorf("after %s the log has\n%s", f.ID, looptest.Show(missing))
			}
		}
	}
	wantSound(t, db, "t")
}
