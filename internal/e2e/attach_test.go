package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// Watchers come to every log of the golden stores with the cursors of its records: as the log
// was left, archived, and in a copy that was exported and imported. Each of them has then seen
// a legal stream, for this project's own machine and for the official client, and both show
// the same messages as one who has seen the run from its beginning.

func TestAttachFromEveryRecord(t *testing.T) {
	t.Parallel()
	c := &corpus{T: t, whole: map[string]*wholeRun{}, known: map[string]bool{}}
	var files []string
	for _, format := range goldenFormats {
		files = append(files, goldenFile(format, "threads.gz"), goldenFile(format, "tools.gz"))
	}
	for _, c.file = range files {
		db := memstore.New()
		loadDump(t, c.file).replay(t, db)
		e := c.engine(db)
		c.attach(e, "as it was left")
		copies := memstore.New()
		for _, key := range c.threads(db) {
			if err := e.Keeper.Archive(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			d, err := audit.Export(t.Context(), db, key)
			if err == nil {
				err = audit.Import(t.Context(), copies, key, d, time.Now(), newTestID)
			}
			if err != nil {
				t.Fatalf("%s of %s: %v", key, c.file, err)
			}
		}
		c.attach(e, "archived")
		c.attach(c.engine(copies), "imported")
	}
	t.Logf("%d runs, %d streams, %d of them different", len(c.whole), c.streams, len(c.list))
	if len(c.whole) < 40 || c.streams < 50*len(c.whole) {
		t.Errorf("the corpus has %d runs, %d streams", len(c.whole), c.streams)
	}
	c.official()
}

func newTestID(prefix string) string {
	return fmt.Sprintf("%s%08d", prefix, looptest.Serial.Add(1))
}

// corpus is the golden threads, and what their watchers have seen.
type corpus struct {
	*testing.T
	file    string
	whole   map[string]*wholeRun // by file, thread and run
	known   map[string]bool      // the streams that are in the list
	list    []seenStream
	streams int
}

// wholeRun is what a watcher of all of a run has seen when the log was as it was left.
type wholeRun struct {
	frames []agui.Frame
	events []agui.Event
	shows  []string
}

// seenStream is what one watcher has seen.
type seenStream struct {
	Name string `json:"name"`
	// Run is the run that was seen from its beginning; empty if it began with snapshots.
	Run    string            `json:"run"`
	Events []json.RawMessage `json:"events"`
}

// engine starts an engine that leaves the runs of dead processes as they are.
func (c *corpus) engine(db store.Store) *looptest.Engine {
	return looptest.Start(c.T, db, func(cfg *looptest.Config) { cfg.Recover, cfg.ArchiveAfter = false, time.Hour },
		looptest.Pinger(1))
}

func (c *corpus) threads(db store.Store) (keys []store.ThreadKey) {
	heads, next, err := db.Walk(c.Context(), "", 1000)
	if err != nil || next != "" {
		c.Fatal(next, err)
	}
	for i := range heads {
		keys = append(keys, heads[i].Key)
	}
	return keys
}

// attach comes to each run with each cursor.
func (c *corpus) attach(e *looptest.Engine, stage string) {
	for _, key := range c.threads(e.Store) {
		who := holdfast.Principal{Tenant: key.Tenant, User: looptest.Must(e.Store.Head(c.Context(), key))(c.T).User}
		runs := looptest.Must(e.Store.Values(c.Context(), key, store.KindRun, "", 0))(c.T)
		for _, run := range runs {
			name := strings.Join([]string{c.file, key.Thread, run.ID}, "/")
			frames, events := looptest.FramesOf(c.T,
				looptest.Must(e.Owner.Events(c.Context(), who, key.Thread, run.ID, store.Cursor{},
					agui.DialectV1))(c.T), nil)
			if frames[0].ID == "" {
				c.seen(name+", "+stage, "", nil, events)
				continue // a fork has no log of it
			}
			w := c.whole[name]
			if w == nil {
				w = &wholeRun{frames, events, looptest.Reduce(events)}
				c.whole[name] = w
			}
			c.same(name+", "+stage, w, nil, events)
			for i, f := range w.frames {
				after := looptest.Must(store.ParseCursor(f.ID))(c.T)
				at := fmt.Sprintf("%s, %s, after %s", name, stage, f.ID)
				reply := looptest.Must(e.Owner.Events(c.Context(), who, key.Thread, run.ID, after, agui.DialectV1))(c.T)
				if (reply == nil) != (i == len(w.frames)-1) {
					c.Fatalf("%s: the reply is %v", at, reply)
				}
				if reply != nil {
					_, rest := looptest.FramesOf(c.T, reply, nil)
					c.same(at, w, w.events[:i+1], rest)
				}
				_, thread := looptest.FramesOf(c.T,
					looptest.Must(e.Owner.Events(c.Context(), who, key.Thread, "", after, agui.DialectV1))(c.T), nil)
				if _, anew := thread[0].(agui.RunStarted); anew {
					c.seen(at+", on the thread", "", nil, thread)
				} else {
					c.same(at+", on the thread", w, w.events[:i+1], thread)
				}
			}
		}
	}
}

// same checks what comes after what was seen: together they are the whole run.
func (c *corpus) same(name string, w *wholeRun, before, rest []agui.Event) {
	run, _ := w.events[0].(agui.RunStarted)
	c.seen(name, c.file+"/"+run.ThreadID+"/"+run.RunID, before, rest)
	if got := looptest.Reduce(slices.Concat(before, rest)); !slices.Equal(got, w.shows) {
		c.Fatalf("%s: shown is\n%q, want\n%q", name, got, w.shows)
	}
}

// seen checks a stream, and notes it for the official client.
func (c *corpus) seen(name, run string, before, rest []agui.Event) {
	c.streams++
	s := seenStream{Name: name, Run: run}
	for _, ev := range slices.Concat(before, rest) {
		s.Events = append(s.Events, agui.Append(nil, ev))
	}
	text, err := json.Marshal(s.Events)
	if err != nil || c.known[string(text)] {
		if err != nil {
			c.Fatal(err)
		}
		return
	}
	c.known[string(text)] = true
	if err := agui.Verify(slices.Values(slices.Concat(before, rest))); err != nil {
		c.Fatalf("%s: %v\n%s", name, err, looptest.Show(slices.Concat(before, rest)))
	}
	c.list = append(c.list, s)
}

// official has the official client read the streams.
func (c *corpus) official() {
	var input bytes.Buffer
	enc := json.NewEncoder(&input)
	for i := range c.list {
		if err := enc.Encode(c.list[i]); err != nil {
			c.Fatal(err)
		}
	}
	cmd := oracle(c.T, "attach.mjs", "1.0.0", "")
	cmd.Stdin = &input
	out, err := cmd.CombinedOutput()
	c.Logf("the official client has read %s", out)
	if err != nil {
		c.Error(err)
	}
}
