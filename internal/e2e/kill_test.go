package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

const (
	moments    = 20
	iterations = 10
	// parts is in how many parts the moments are tried side by side.
	parts = 8
)

// fastModel makes the demo model pause for half a millisecond between two words. The
// server is killed at most killDelay after a word that the watcher has seen: six words
// later, if the machine is idle.
const (
	fastModel = "--demo-delay=500us"
	killDelay = 3 * time.Millisecond
)

// TestKill9 kills the server at 20 different moments of a run with parallel
// tools, at every checkpoint frequency, with recovery on and off. Each time the
// run completes, the history is well formed, nothing that was finished is run
// again, and the watcher has every record once. CI takes a part of the moments, another
// one for each way.
func TestKill9(t *testing.T) {
	t.Parallel()
	testKill9(t, newFile, 0)
}

func newRedis(t *testing.T) string { return sharedRedis.Server(t).Database(t) }

func newFile(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "data") }

// TestKill9OnRedis is the same with the threads in Redis.
func TestKill9OnRedis(t *testing.T) {
	t.Parallel()
	testKill9(t, newRedis, 2)
}

func testKill9(t *testing.T, newStore func(*testing.T) string, shift int) {
	for _, frequency := range []string{"per_iteration", "per_turn", "manual"} {
		for _, recovery := range []string{"on", "off"} {
			shift++
			t.Run(frequency+"/recover="+recovery, func(t *testing.T) {
				t.Parallel()
				rehearsal := newKiller(t, newStore(t), frequency, recovery, fastModel)
				total := rehearsal.rehearse()
				rehearsal.p.kill()
				eachMoment(t, shift, func(t *testing.T) func(i int) {
					k := newKiller(t, newStore(t), frequency, recovery, fastModel)
					return func(i int) { k.trial(i, 1+i*total/moments) }
				})
			})
		}
	}
}

// eachMoment tries all moments, some of them one after the other with the same
// servers, and as many parts of them side by side as parts says. CI takes one part, from
// the shift on.
func eachMoment(t *testing.T, shift int, begin func(t *testing.T) (try func(i int))) {
	all := make([]int, parts)
	for part := range all {
		all[part] = part
	}
	for _, part := range testkit.Sample(t, parts, shift, all) {
		t.Run(fmt.Sprintf("part %d", part), func(t *testing.T) {
			t.Parallel()
			try := begin(t)
			for i := part; i < moments; i += parts {
				try(i)
			}
		})
	}
}

// killer kills a server, and starts it again on the same store.
type killer struct {
	*testing.T
	recovery string
	addr     string
	store    string // as the server is told
	journal  string
	args     []string
	p        *process
}

func newKiller(t *testing.T, store, frequency, recovery string, args ...string) *killer {
	k := &killer{
		T:        t,
		recovery: recovery,
		addr:     redistest.FreeAddr(t),
		store:    store,
		journal:  filepath.Join(t.TempDir(), "journal"),
	}
	k.args = []string{
		"--recover=" + recovery,
		"--checkpoint-frequency=" + frequency,
		"--demo-delay=2ms",
		"--lease=300ms",
		"--archive-after=1h", // the log must stay as it was written, to be compared with what was seen
		"--demo-journal=" + k.journal,
	}
	k.args = append(k.args, args...)
	k.p = start(t, k.addr, k.store, k.args...)
	return k
}

func (k *killer) plan() map[string]any {
	return userMessage("u1", fmt.Sprintf("plan %d steps", iterations))
}

// rehearse counts the records of a run that nobody disturbs.
func (k *killer) rehearse() int {
	res, err := post(k.Context(), k.p.url, input("rehearsal", "r1", k.plan()))
	if err != nil {
		k.Fatal(err)
	}
	defer res.Body.Close()
	n := 0
	if err := readStream(res.Body, func(record) bool { n++; return false }); err != nil {
		k.Fatal(err)
	}
	return n
}

// trial runs one thread, kills the server at a moment, and starts it again.
func (k *killer) trial(i, after int) {
	w := &watcher{killer: k, thread: fmt.Sprintf("t%d", i), run: "r1"}
	finished, mark := k.killAt(w, after)
	k.p = start(k.T, k.addr, k.store, k.args...)
	w.finish()
	w.checkLog()
	k.checkHistory(w.thread)
	k.checkRepeats(w.thread, finished, k.journalFrom(mark))
}

// killAt runs a plan and kills the server once the watcher has seen so many records. It
// returns what was finished then, and how long the journal was.
func (k *killer) killAt(w *watcher, after int) (finished done, mark int64) {
	k.Helper()
	res, err := post(k.Context(), k.p.url, input(w.thread, w.run, k.plan()))
	if err != nil {
		k.Fatal(err)
	}
	// The error is the cut connection.
	_ = readStream(res.Body, func(r record) bool {
		w.take(r)
		return len(w.seen) >= after
	})
	wait.Pass(rand.N(killDelay))
	k.p.kill()
	res.Body.Close()
	return k.finished(w.thread), k.journalSize()
}

// done is what the store holds as finished.
type done struct {
	tools  map[string]bool // call ids with a saved result
	models int             // committed answers
}

// finished reads the store of the dead server.
func (k *killer) finished(thread string) done {
	k.Helper()
	s := openStore(k.T, k.store)
	defer s.Close()
	d := done{tools: map[string]bool{}}
	messages, err := s.Messages(context.Background(), store.ThreadKey{Tenant: "default", Thread: thread})
	if errors.Is(err, store.ErrNotFound) {
		k.Fatalf("thread %s: accepted and lost", thread)
	}
	if err != nil {
		k.Fatal(err)
	}
	for _, m := range messages {
		var v struct{ Role, ToolCallID string }
		if err := json.Unmarshal(m.Data, &v); err != nil {
			k.Fatal(err)
		}
		switch v.Role {
		case "tool":
			d.tools[v.ToolCallID] = true
		case "assistant":
			d.models++
		}
	}
	return d
}

// openStore opens what a server was told to use.
func openStore(t *testing.T, db string) store.Store {
	t.Helper()
	var s store.Store
	var err error
	if path, ok := strings.CutPrefix(db, "file:"); ok {
		s, err = filestore.Open(path, filestore.Options{})
	} else {
		s, err = redisstore.Open(t.Context(), db, redisstore.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (k *killer) journalSize() int64 {
	info, err := os.Stat(k.journal)
	if err != nil {
		k.Fatal(err)
	}
	return info.Size()
}

func (k *killer) journalFrom(mark int64) []string {
	b, err := os.ReadFile(k.journal)
	if err != nil {
		k.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b[mark:])), "\n")
}

// checkRepeats counts in the fakes: no finished tool and no finished model call
// is started again.
func (k *killer) checkRepeats(thread string, d done, journal []string) {
	k.Helper()
	for _, line := range journal {
		f := fields(line)
		switch {
		case strings.HasPrefix(line, "tool start") && (f["thread"] == "" || f["call"] == ""):
			k.Errorf("the journal does not say which call that was: %s", line)
		case strings.HasPrefix(line, "tool start") && f["thread"] == thread:
			if d.tools[f["call"]] {
				k.Errorf("%s: a finished tool ran again: %s", thread, line)
			}
		case strings.HasPrefix(line, "model start") && f["thread"] == thread:
			if n, err := strconv.Atoi(f["iteration"]); err != nil || n < d.models {
				k.Errorf("%s: a finished model call ran again (%d are committed): %s", thread, d.models, line)
			}
		}
	}
}

func fields(line string) map[string]string {
	m := map[string]string{}
	for _, f := range strings.Fields(line) {
		if name, value, ok := strings.Cut(f, "="); ok {
			m[name] = value
		}
	}
	return m
}

// checkHistory: every call has exactly one result, after it and before the next
// answer, and all steps are there.
func (k *killer) checkHistory(thread string) {
	k.Helper()
	var body struct {
		Messages []struct {
			Role, ToolCallID string
			ToolCalls        []struct{ ID string }
		}
	}
	if code := getJSON(k.T, k.p.url+"/threads/"+thread+"/messages", &body); code != http.StatusOK {
		k.Fatalf("%s: messages: %d", thread, code)
	}
	open := map[string]bool{}
	answers := 0
	for _, m := range body.Messages {
		switch m.Role {
		case "assistant":
			if len(open) > 0 {
				k.Errorf("%s: an answer follows calls without results: %v", thread, open)
			}
			if len(m.ToolCalls) > 0 {
				answers++
			}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				k.Errorf("%s: a result without an open call: %s", thread, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		}
	}
	if answers != iterations || len(open) > 0 || body.Messages[len(body.Messages)-1].Role != "assistant" {
		k.Errorf("%s: the run is not complete: %d steps, open calls %v", thread, answers, open)
	}
}

// watcher reads a thread's log with a cursor, as a page does that survives its
// server.
type watcher struct {
	*killer
	thread string
	run    string
	seen   []record
}

func (w *watcher) take(r record) {
	if r.ID != "" {
		w.seen = append(w.seen, r)
	}
}

// finish reconnects with the cursor until the run ends; where recovery is off,
// the run was ended as cut off and an empty-messages POST continues it.
func (w *watcher) finish() {
	w.Helper()
	end := w.follow()
	if w.recovery == "off" && end.Data["code"] == codes.CutOff {
		w.run = "r2"
		res, err := post(w.Context(), w.p.url, input(w.thread, w.run))
		if err != nil || res.StatusCode != http.StatusOK {
			w.Fatalf("%s: resume: %v %v", w.thread, err, res)
		}
		res.Body.Close() // the watcher goes on with its cursor
		end = w.follow()
	}
	if end.kind() != "RUN_FINISHED" {
		w.Fatalf("%s: ended with %s\nserver: %s", w.thread, end.Raw, w.p.out)
	}
}

// follow reads from the cursor to the run's end and returns the last record.
func (w *watcher) follow() record {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet,
		w.p.url+"/threads/"+w.thread+"/runs/"+w.run+"/events", nil)
	if err != nil {
		w.Fatal(err)
	}
	if len(w.seen) > 0 {
		req.Header.Set("Last-Event-ID", w.seen[len(w.seen)-1].ID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		return w.seen[len(w.seen)-1]
	}
	if res.StatusCode != http.StatusOK {
		w.Fatalf("%s: follow: %d", w.thread, res.StatusCode)
	}
	if err := readStream(res.Body, func(r record) bool { w.take(r); return false }); err != nil {
		w.Fatalf("%s: follow: %v", w.thread, err)
	}
	return w.seen[len(w.seen)-1]
}

// checkLog: the watcher has every record once, in order.
func (w *watcher) checkLog() {
	w.Helper()
	for i, r := range w.seen {
		number, _, _ := strings.Cut(r.ID, "-")
		if number != strconv.Itoa(i+1) {
			w.Fatalf("%s: record %d of the watcher has the id %s", w.thread, i+1, r.ID)
		}
	}
	for n, run := range map[string]string{"first": "r1", "last": w.run} {
		replay := &watcher{killer: w.killer, thread: w.thread, run: run}
		replay.follow()
		at := 0
		if n == "last" {
			at = len(w.seen) - len(replay.seen)
		}
		for i, r := range replay.seen {
			if r.ID != w.seen[at+i].ID || r.Raw != w.seen[at+i].Raw {
				w.Fatalf("%s: replay of %s differs at %s", w.thread, run, r.ID)
			}
		}
	}
}
