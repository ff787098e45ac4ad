package e2e

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/redis/go-redis/v9"
)

// Stores of builds from before the first release, whose stamps may say the same numbers as those
// of today. testdata/early has what such a build has written: a folder, a dump of Redis, and
// documents of threads.

func early(name string) string { return filepath.Join("../../testdata/early", name+".gz") }

// earlyDocument returns a file with the document of a thread.
func earlyDocument(t *testing.T, thread string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), thread+".json")
	unpack(t, early(thread), file)
	return file
}

// refusesEarly expects that neither the server nor a command opens a store, and that both say
// what to do. what returns what is in the store, in which nothing may change.
func refusesEarly(t *testing.T, store string, what func() map[string]string) {
	t.Helper()
	before := what()
	for _, args := range [][]string{
		{"--addr", redistest.FreeAddr(t), "--store", store},
		{"check", store},
	} {
		p := run(t, exec.Command(binary, args...))
		<-p.done
		const advice = "export their threads with that build (holdfast export"
		text := strings.ReplaceAll(p.out.String(), "export its", "export their")
		if code := p.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(text, advice) {
			t.Errorf("%q exits with %d: %s", args, code, text)
		}
	}
	if after := what(); len(before) == 0 || !maps.Equal(before, after) {
		t.Errorf("the store was changed: %v", after)
	}
}

// TestEarlyFolder: an embedded store of such a build is refused untouched.
func TestEarlyFolder(t *testing.T) {
	t.Parallel()
	store := openFolder(t, early("folder"))
	refusesEarly(t, store, func() map[string]string { return contents(t, strings.TrimPrefix(store, "file:")) })
}

// TestEarlyRedis: so is one in Redis.
func TestEarlyRedis(t *testing.T) {
	t.Parallel()
	store := openRDB(t, early("redis"))
	o, err := redis.ParseURL(store)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	refusesEarly(t, store, func() map[string]string {
		dumped := map[string]string{}
		for _, key := range c.Keys(t.Context(), "*").Val() {
			dumped[key] = c.Dump(t.Context(), key).Val()
		}
		return dumped
	})
}

// TestEarlyDocuments: what such a build has exported goes on in a store of this one: a question
// is answered, a run that was cut off is resumed, and a finished one is shown as it was.
func TestEarlyDocuments(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		store := newStore(t)
		for _, thread := range []string{"asked", "cut", "finished"} {
			out, err := exec.Command(binary, "import", store, earlyDocument(t, thread)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s", thread, err, out)
			}
		}
		if out, err := exec.Command(binary, "check", store).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p := start(t, redistest.FreeAddr(t), store, "--demo-delay=1ms")
		k := &killer{T: t, p: p}
		replay := &watcher{killer: k, thread: "finished", run: "r1"}
		if end := replay.follow(); end.kind() != "RUN_FINISHED" || len(replay.seen) < 20 {
			t.Errorf("the finished run is shown with %d records, to %s", len(replay.seen), end.Raw)
		}
		resumed := onlyTalk(t, p, "cut")
		resumed.runs = 10
		resumed.wantEnd(resumed.posts("messages", []any{}), "success")
		var info struct {
			Interrupts []map[string]any `json:"interrupts"`
		}
		if code := getJSON(t, p.url+"/threads/asked", &info); code != http.StatusOK || len(info.Interrupts) != 1 {
			t.Fatalf("%d, the questions are %v", code, info.Interrupts)
		}
		asked := onlyTalk(t, p, "asked")
		asked.runs = 10
		answer := map[string]any{
			"interruptId": info.Interrupts[0]["id"],
			"status":      "resolved",
			"payload":     map[string]string{"answer": "tea"},
		}
		asked.wantEnd(asked.posts("resume", []any{answer}), "success")
	})
}

// TestEarlierDocument: a document in a format that such a build does not write any more is
// refused, with what to do.
func TestEarlierDocument(t *testing.T) {
	t.Parallel()
	file := earlyDocument(t, "asked")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.ReplaceAll(string(text), `"format": 11`, `"format": 4`)
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "import", newFile(t), file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "has format 4 of an early build") {
		t.Errorf("%v: %s", err, out)
	}
}
