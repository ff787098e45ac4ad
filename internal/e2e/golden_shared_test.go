package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// The versions of the shared state in a golden store: some are whole, others patches on the one before. The stores
// have a file of their own; format 1 has no patches.

// goldenShared is what such a store held when it was written.
type goldenShared struct {
	State       json.RawMessage            // of the thread
	Checkpoints map[string]json.RawMessage // the states of checkpoints, by their ids
	Replay      []record                   // of the last run
}

// sharedThread is the thread.
const sharedThread = "shared"

// TestGoldenShared: versions of the shared state that an earlier version left behind are read, gone back to, and
// changed.
func TestGoldenShared(t *testing.T) {
	t.Parallel()
	if *writeGolden {
		writeGoldenShared(t, goldenFormats[len(goldenFormats)-1])
	}
	for _, format := range goldenFormats[1:] {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
				text, err := os.ReadFile(goldenFile(format, "shared.json"))
				if err != nil {
					t.Fatal(err)
				}
				var want goldenShared
				if err := json.Unmarshal(text, &want); err != nil {
					t.Fatal(err)
				}
				want.check(t, sharing(t, replayed(t, newStore(t), goldenFile(format, "shared.gz"))))
			})
		})
	}
}

// sharing starts a server whose demo has update_state.
func sharing(t *testing.T, store string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	const agents = "agents: [{name: demo, model: demo, tools: [update_state]}]\n"
	if err := os.WriteFile(file, []byte(agents), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, redistest.FreeAddr(t), store, "--demo-delay=0s", "--config="+file, "--archive-after=1h")
}

// sets posts a message in whose answer the members are set, each by a call of its own.
func sets(t *testing.T, p *process, run string, members ...string) {
	t.Helper()
	var calls []string
	for _, m := range members {
		calls = append(calls, fmt.Sprintf(`update_state {"patch":[{"op":"add","path":"/%s","value":"by %s"}]}`, m, run))
	}
	res, err := post(t.Context(), p.url, []byte(mustText(t, map[string]any{
		"threadId":        sharedThread,
		"runId":           run,
		"protocolVersion": "1.0",
		"messages":        []any{userMessage("u-"+run, "use "+strings.Join(calls, " and "))},
		"forwardedProps":  map[string]any{"holdfast": map[string]any{"onUnfinished": "abandon"}},
	})))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var end record
	if err := readStream(res.Body, func(r record) bool { end = r; return false }); err != nil ||
		end.kind() != "RUN_FINISHED" {
		t.Fatalf("%s ended with %s, %v", run, end.Raw, err)
	}
}

// state reads the thread's shared state.
func sharedState(t *testing.T, p *process, path string) json.RawMessage {
	t.Helper()
	var got struct {
		State json.RawMessage `json:"state"`
	}
	if code := getJSON(t, p.url+"/threads/"+sharedThread+path, &got); code != http.StatusOK {
		t.Fatalf("GET %s: %d", path, code)
	}
	return got.State
}

func writeGoldenShared(t *testing.T, format string) {
	t.Helper()
	store := newFile(t)
	p := sharing(t, store)
	long := strings.Repeat("long ", 100)
	sets(t, p, "r0", "first")
	res, err := http.Post(p.url+"/threads/"+sharedThread+"/checkpoints", "application/json",
		strings.NewReader(`{"state":{"text":"`+long+`","a/b":{"m~n":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	sets(t, p, "r1", "one", "two")
	sets(t, p, "r2", "three", "four", "five")
	want := goldenShared{State: sharedState(t, p, "/state"), Checkpoints: map[string]json.RawMessage{}}
	for _, id := range checkpointIDs(t, p) {
		want.Checkpoints[id] = sharedState(t, p, "/checkpoints/"+id)
	}
	k := &killer{T: t, p: p}
	w := &watcher{killer: k, thread: sharedThread, run: "r2"}
	w.follow()
	want.Replay = w.seen
	p.kill()
	db := openStore(t, store)
	readDump(t, db, nil).write(t, goldenFile(format, "shared.gz"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile(format, "shared.json"), []byte(mustText(t, want)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkpointIDs returns the ids of the thread's checkpoints.
func checkpointIDs(t *testing.T, p *process) (ids []string) {
	t.Helper()
	var list struct {
		Checkpoints []struct {
			ID string `json:"id"`
		} `json:"checkpoints"`
	}
	if code := getJSON(t, p.url+"/threads/"+sharedThread+"/checkpoints", &list); code != http.StatusOK {
		t.Fatalf("the checkpoints: %d", code)
	}
	for _, c := range list.Checkpoints {
		ids = append(ids, c.ID)
	}
	return ids
}

// check reads what there is, goes back to each state that there was, and changes it.
func (want *goldenShared) check(t *testing.T, p *process) {
	if got := sharedState(t, p, "/state"); !bytes.Equal(got, want.State) {
		t.Errorf("the state is %s, want %s", got, want.State)
	}
	ids := checkpointIDs(t, p)
	if len(ids) != len(want.Checkpoints) {
		t.Errorf("there are %d checkpoints, want %d", len(ids), len(want.Checkpoints))
	}
	for _, id := range ids {
		if got := sharedState(t, p, "/checkpoints/"+id); !bytes.Equal(got, want.Checkpoints[id]) {
			t.Errorf("checkpoint %s has the state %s, want %s", id, got, want.Checkpoints[id])
		}
	}
	w := &watcher{killer: &killer{T: t, p: p}, thread: sharedThread, run: "r2"}
	w.follow()
	plain := func(records []record) (all []string) {
		for _, r := range records {
			all = append(all, r.ID+" "+unversioned(r.Raw))
		}
		return all
	}
	if got, wanted := plain(w.seen), plain(want.Replay); !slices.Equal(got, wanted) {
		t.Errorf("the last run is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	if deltas := slices.ContainsFunc(w.seen, func(r record) bool { return r.kind() == "STATE_DELTA" }); !deltas {
		t.Error("the last run has no patch")
	}
	sets(t, p, "r3", "six", "seven")
	for n, id := range ids {
		if string(want.Checkpoints[id]) == "null" {
			continue
		}
		res, err := http.Post(p.url+"/threads/"+sharedThread+"/rewind", "application/json",
			strings.NewReader(`{"checkpointId":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("to %s: %d %s", id, res.StatusCode, said)
		}
		if got := sharedState(t, p, "/state"); !bytes.Equal(got, want.Checkpoints[id]) {
			t.Fatalf("at %s the state is %s, want %s", id, got, want.Checkpoints[id])
		}
		if n == len(ids)/2 {
			sets(t, p, fmt.Sprint("back", n), "again")
			if got := sharedState(t, p, "/state"); !strings.Contains(string(got),
				fmt.Sprint(`"again":"by back`, n, `"`)) {
				t.Errorf("after %s the state is %s", id, got)
			}
		}
	}
	if got := sharedState(t, p, "/checkpoints/"+ids[0]); !bytes.Equal(got, want.Checkpoints[ids[0]]) {
		t.Errorf("afterwards, checkpoint %s has the state %s, want %s", ids[0], got, want.Checkpoints[ids[0]])
	}
}
