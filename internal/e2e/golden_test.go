package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

var writeGolden = flag.Bool("write-golden", false,
	"write the golden stores of a format that is new; those that are there never change")

// goldenFormats are the formats that every version reads. A new one is added;
// none is ever removed or changed.
var goldenFormats = []string{"v1", "v2"}

// golden is what a store of a format held when it was written.
type golden struct {
	Messages map[string]json.RawMessage // by thread
	Replay   []record                   // the finished run, frame by frame
	Question string                     // the open interrupt's id
	Stopped  []string                   // threads that went back into the middle of a run
	goldenStates
	goldenKeys
	goldenChat
	goldenEdited
	goldenModels
	goldenOutside
	goldenRevision
}

// TestGoldenStores: stores that an earlier version left behind, one of its runs
// cut off in the middle, are read and gone on with.
func TestGoldenStores(t *testing.T) {
	t.Parallel()
	if *writeGolden {
		format := goldenFormats[len(goldenFormats)-1]
		writeGoldenThreads(t, format)
		writeGoldenFolder(t, format)
		writeGoldenRedis(t, format)
	}
	for _, format := range goldenFormats {
		for kind, g := range goldenStores {
			t.Run(format+"/"+kind, func(t *testing.T) {
				t.Parallel()
				store := g.open(t, goldenFile(format, g.data+".gz"))
				text, err := os.ReadFile(goldenFile(format, g.data+".json"))
				if err != nil {
					t.Fatal(err)
				}
				var want golden
				if err := json.Unmarshal(text, &want); err != nil {
					t.Fatal(err)
				}
				want.checkUsed(t, store)
				journal := filepath.Join(t.TempDir(), "journal")
				models := newGoldenProvider(t)
				p := models.start(t, store, format, journal, "--demo-delay=1ms", "--lease=300ms", "--log-level=debug",
					"--data-format=newest")
				want.checkStates(t, p)
				checkGolden(t, p, want)
				want.checkKeys(t, p)
				want.checkChats(t, p, journal)
				want.checkEdited(t, p, journal)
				want.checkModels(t, p, models)
				want.checkOutside(t, p)
				want.checkRevision(t, p)
			})
		}
	}
}

// goldenStores have the data of a format: as commits that any store can make, and as
// Redis and the embedded store have written it.
var goldenStores = map[string]struct {
	data string // the name of the files
	open func(t *testing.T, file string) (store string)
}{
	"file": {
		data: "threads",
		open: func(t *testing.T, file string) string { return replayed(t, newFile(t), file) },
	},
	"file-folder": {data: "folder", open: openFolder},
	"redis": {
		data: "threads",
		open: func(t *testing.T, file string) string { return replayed(t, newRedis(t), file) },
	},
	"redis-rdb": {data: "redis", open: openRDB},
}

// replayed has a store hold what is in the file.
func replayed(t *testing.T, store, file string) string {
	t.Helper()
	db := openStore(t, store)
	loadDump(t, file).replay(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return store
}

func openRDB(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	unpack(t, file, filepath.Join(dir, "store"))
	return redistest.Start(t, "--dir", dir, "--dbfilename", "store").URL()
}

func openFolder(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	unpack(t, file, filepath.Join(dir, "store.tar"))
	f, err := os.Open(filepath.Join(dir, "store.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return "file:" + filepath.Join(dir, "data")
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "data", h.Name)
		if h.FileInfo().IsDir() {
			continue // its files make it
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func goldenFile(format, name string) string { return filepath.Join("../../testdata", format, name) }

// stateVersion is what a stream says of the shared state besides what it is. Earlier builds did not say it.
var stateVersion = regexp.MustCompile(`,"metadata":\{"holdfast":\{"stateVersion":"[^"]*"\}\}`)

// unversioned returns a record without the version of the shared state.
func unversioned(raw string) string { return stateVersion.ReplaceAllString(raw, "") }

func checkGolden(t *testing.T, p *process, want golden) {
	for thread, messages := range want.Messages {
		var got, wanted any
		if code := getJSON(t, p.url+"/threads/"+thread+"/messages", &got); code != http.StatusOK {
			t.Fatalf("%s: %d", thread, code)
		}
		if err := json.Unmarshal(messages, &wanted); err != nil {
			t.Fatal(err)
		}
		if a, b := mustText(t, got), mustText(t, wanted); a != b {
			t.Errorf("the messages of %s are\n%s\nwant\n%s", thread, a, b)
		}
	}
	k := &killer{T: t, p: p}
	replay := &watcher{killer: k, thread: "finished", run: "r1"}
	replay.follow()
	if len(replay.seen) != len(want.Replay) {
		t.Fatalf("the finished run has %d records, want %d", len(replay.seen), len(want.Replay))
	}
	for i, r := range replay.seen {
		if r.ID != want.Replay[i].ID || unversioned(r.Raw) != unversioned(want.Replay[i].Raw) {
			t.Errorf("record %d is %s %s, want %s %s", i, r.ID, r.Raw, want.Replay[i].ID, want.Replay[i].Raw)
		}
	}
	// The run that was cut off goes on, and the question can be answered.
	if end := (&watcher{killer: k, thread: "cut", run: "r1"}).follow(); end.kind() != "RUN_FINISHED" {
		t.Errorf("the run that was cut off ended with %s", end.Raw)
	}
	for _, thread := range want.Stopped {
		var end record
		res, err := post(t.Context(), p.url,
			[]byte(`{"threadId":"`+thread+`","runId":"on","protocolVersion":"1.0","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		err = readStream(res.Body, func(r record) bool { end = r; return false })
		res.Body.Close()
		if err != nil || end.kind() != "RUN_FINISHED" {
			t.Errorf("%s, which had gone back, ended with %s, %v", thread, end.Raw, err)
		}
	}
	answer := `{"threadId":"asked","runId":"r2","protocolVersion":"1.0","messages":[],"resume":[{"interruptId":"` +
		want.Question + `","status":"resolved","payload":{"answer":"tea"}}]}`
	res, err := post(t.Context(), p.url, []byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var end record
	if err := readStream(res.Body, func(r record) bool { end = r; return false }); err != nil ||
		end.kind() != "RUN_FINISHED" || !strings.Contains(end.Raw, "success") {
		t.Errorf("the answered question ended with %d %s, %v", res.StatusCode, end.Raw, err)
	}
}

func mustText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writeGoldenThreads writes what a store holds as commits.
func writeGoldenThreads(t *testing.T, format string) {
	t.Helper()
	store := newFile(t)
	want := makeGolden(t, store, format)
	db := openStore(t, store)
	readDump(t, db, slices.Sorted(maps.Keys(want.Used))).write(t, goldenFile(format, "threads.gz"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	writeWant(t, want, goldenFile(format, "threads.json"))
}

// writeGoldenFolder writes what the embedded store has on disk.
func writeGoldenFolder(t *testing.T, format string) {
	t.Helper()
	store := newFile(t)
	want := makeGolden(t, store, format)
	archive := filepath.Join(t.TempDir(), "store.tar")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := w.AddFS(os.DirFS(strings.TrimPrefix(store, "file:"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	pack(t, archive, goldenFile(format, "folder.gz"))
	writeWant(t, want, goldenFile(format, "folder.json"))
}

// writeGoldenRedis writes what Redis saves.
func writeGoldenRedis(t *testing.T, format string) {
	t.Helper()
	dir := t.TempDir()
	s := redistest.Start(t, "--dir", dir, "--dbfilename", "store")
	want := makeGolden(t, s.URL(), format)
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	if err := c.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	pack(t, filepath.Join(dir, "store"), goldenFile(format, "redis.gz"))
	writeWant(t, want, goldenFile(format, "redis.json"))
}

func writeWant(t *testing.T, want golden, file string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(mustText(t, want)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// makeGolden makes a store with a finished, an asking, a failed, a cancelled and a cut-off run,
// and returns what it holds.
func makeGolden(t *testing.T, store, format string) golden {
	t.Helper()
	want := golden{Messages: map[string]json.RawMessage{}}
	models := newGoldenProvider(t)
	want.leaveInFlight(t, store, format, models)
	want.leaveBranch(t, store, format, models)
	// Without recovery, it leaves what is in flight.
	p := models.start(t, store, format, filepath.Join(t.TempDir(), "journal"), "--demo-delay=2ms",
		"--archive-after=1ms", "--log-level=debug", "--recover=off")
	run := func(thread, text string, each func(record) bool) {
		res, err := post(t.Context(), p.url, input(thread, "r1", userMessage("u1", text)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := readStream(res.Body, each); err != nil {
			t.Fatal(err)
		}
	}
	run("finished", "plan 3 steps", func(record) bool { return false })
	goBack(t, p, &want)
	run("asked", "ask me tea or coffee?", func(r record) bool {
		if outcome, ok := r.Data["outcome"].(map[string]any); ok {
			want.Question = outcome["interrupts"].([]any)[0].(map[string]any)["id"].(string)
		}
		return false
	})
	run("failed", "fail", func(record) bool { return false })
	n := 0
	run("cancelled", "slow 1000", func(record) bool {
		if n++; n == 5 {
			cancelRun(t, p.url, "cancelled", "r1")
		}
		return false
	})
	want.allow(t, p)
	want.handOut(t, p)
	for _, thread := range []string{"finished", "asked", "failed", "cancelled", "allowed", "approved"} {
		var body json.RawMessage
		getJSON(t, p.url+"/threads/"+thread+"/messages", &body)
		want.Messages[thread] = body
	}
	want.readRevision(t, p)
	want.chat(t, p)
	want.readStates(t, p)
	want.readKey(t, p, "asked")
	p.kill()
	want.leaveRunning(t, store, format, models)
	want.readUsed(t, store)
	return want
}

// leaveRunning kills a server in the middle of its runs. It is the last one, because the next
// one would end them. Its calls take long enough to be in their middle.
func (g *golden) leaveRunning(t *testing.T, store, format string, models *goldenProvider) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "journal")
	p := models.start(t, store, format, journal, "--demo-delay=100ms", "--log-level=debug", "--recover=off")
	res, err := post(t.Context(), p.url, input("cut", "r1", userMessage("u1", "plan 20 steps")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	n := 0
	if err := readStream(res.Body, func(record) bool { n++; return n == 50 }); err != nil {
		t.Fatal(err)
	}
	g.leaveModels(t, p, models)
	g.readListed(t, p)
	g.leaveEdited(t, p, journal)
}

// goBack forks the finished run in its middle, and waits until its log is archived:
// then it is what it will be.
func goBack(t *testing.T, p *process, want *golden) {
	t.Helper()
	var list struct {
		Checkpoints []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"checkpoints"`
	}
	getJSON(t, p.url+"/threads/finished/checkpoints", &list)
	for _, cp := range list.Checkpoints {
		if cp.Status == "running" {
			body := `{"checkpointId":"` + cp.ID + `","threadId":"forked","reuseResults":true}`
			res, err := http.Post(p.url+"/threads/finished/fork", "application/json", strings.NewReader(body))
			if err != nil || res.StatusCode != http.StatusCreated {
				t.Fatalf("fork: %v, %v", res, err)
			}
			res.Body.Close()
			want.Stopped = append(want.Stopped, "forked")
			break
		}
	}
	wait.For(t, func() error {
		var info struct {
			Size map[string]int `json:"sizeBytes"`
		}
		getJSON(t, p.url+"/threads/finished", &info)
		if info.Size["log"] > 0 && info.Size["records"] == 0 {
			return nil
		}
		return fmt.Errorf("the log is not archived: %v", info.Size)
	})
	k := &killer{T: t, p: p}
	replay := &watcher{killer: k, thread: "finished", run: "r1"}
	replay.follow()
	want.Replay = replay.seen
}

func pack(t *testing.T, from, to string) {
	t.Helper()
	if _, err := os.Stat(to); err == nil {
		t.Fatalf("%s is there: golden stores never change", to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	z.ModTime = time.Time{}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
