package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// cashier is a provider whose models charge a card once, and then say their names. Before
// that, m1 waits until it is let go; the requester is told on held.
type cashier struct {
	*testing.T
	held chan string // gets the model's name
	free chan struct{}
}

// ServeHTTP implements [http.Handler].
func (c *cashier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Messages []struct{ Role string }
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		c.Errorf("the model is asked %s: %v", body, err)
		return
	}
	if asked.Messages[len(asked.Messages)-1].Role != "tool" {
		fmt.Fprint(w, chatDelta(`{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"charge_card",`+
			`"arguments":"{\"amount\":5,`+
			`\"currency\":\"EUR\"}"}}]}`)+
			"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"+chatEnd)
		return
	}
	c.held <- asked.Model
	if asked.Model == "m1" {
		select {
		case <-c.free:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":"by %s"}`, asked.Model))+
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"+chatEnd)
}

// branches are servers with two editions of an agents file, on one store.
type branches struct {
	*testing.T
	*cashier
	store, journal string
	args           []string
	provider       string
}

func newBranches(t *testing.T, store string, args ...string) *branches {
	b := &branches{
		T:       t,
		cashier: &cashier{T: t, held: make(chan string, 10), free: make(chan struct{})},
		store:   store,
		args:    args,
	}
	provider := httptest.NewServer(b.cashier)
	t.Cleanup(provider.Close)
	b.provider, b.journal = provider.URL, filepath.Join(t.TempDir(), "journal")
	return b
}

// write writes an edition of the agents file.
func (b *branches) write(file string, edition int) {
	b.T.Helper()
	text := fmt.Sprintf("agents:\n  - {name: a, model: openai/m%d, baseURL: %q, tools: [charge_card]}\n", edition,
		b.provider)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.T.Fatal(err)
	}
}

// open starts a server with an edition, and returns its file too.
func (b *branches) open(edition int) (p *process, file string) {
	b.T.Helper()
	file = filepath.Join(b.T.TempDir(), "holdfast.yaml")
	b.write(file, edition)
	args := append([]string{"--config=" + file, "--lease=300ms", "--on-revision=pin", "--demo-journal=" + b.journal},
		b.args...)
	return start(b.T, redistest.FreeAddr(b.T), b.store, args...), file
}

// posts posts to the thread t and returns how the stream ends.
func (b *branches) posts(p *process, run string, messages ...map[string]any) *http.Response {
	b.T.Helper()
	res, err := post(b.T.Context(), p.url, input("t", run, messages...))
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { res.Body.Close() })
	return res
}

// asked waits until a model is asked for its second answer, and checks which one it is.
func (b *branches) asked(model string) {
	b.T.Helper()
	select {
	case got := <-b.held:
		if got != model {
			b.T.Errorf("%s is asked, want %s", got, model)
		}
	case <-time.After(patience):
		b.T.Fatalf("nobody asks %s", model)
	}
}

// revisions returns what is shown of the runs of the thread t: the revision of each.
func (b *branches) revisions(p *process) map[string]string {
	b.T.Helper()
	var shown struct {
		Runs []struct{ ID, Revision string }
	}
	if code := getJSON(b.T, p.url+"/threads/t/runs", &shown); code != http.StatusOK {
		b.T.Fatalf("the runs are not shown: %d", code)
	}
	all := map[string]string{}
	for _, r := range shown.Runs {
		all[r.ID] = r.Revision
	}
	return all
}

// revisionOf returns the revision of a server's agent.
func (b *branches) revisionOf(p *process) string {
	b.T.Helper()
	var shown struct{ Agents []struct{ Revision string } }
	if code := getJSON(b.T, p.url+"/agents", &shown); code != http.StatusOK || len(shown.Agents) != 1 ||
		shown.Agents[0].Revision == "" {
		b.T.Fatalf("the agents are shown as %+v (%d)", shown, code)
	}
	return shown.Agents[0].Revision
}

// awaitWaiting watches the run r1 at a server, from the cursor on, until it is said to wait,
// and returns for which revision. watch gets the records that follow.
func (b *branches) awaitWaiting(p *process, cursor string) (waiting map[string]any, watch *http.Response) {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), http.MethodGet, p.url+"/threads/t/runs/r1/events", nil)
	if err != nil {
		b.T.Fatal(err)
	}
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	if watch, err = http.DefaultClient.Do(req); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { watch.Body.Close() })
	err = readStream(watch.Body, func(r record) bool {
		waiting, _ = r.Data["value"].(map[string]any)
		return r.Data["name"] == "holdfast.waiting"
	})
	if err != nil || waiting == nil {
		b.T.Fatalf("the run does not wait: %v\n%s", err, p.out)
	}
	return waiting, watch
}

// charges checks that the card was charged once, by any process.
func (b *branches) charges() {
	b.T.Helper()
	journal, err := os.ReadFile(b.journal)
	if err != nil || strings.Count(string(journal), "charge key=") != 1 {
		b.T.Errorf("the journal says %s, %v", journal, err)
	}
}

// TestPinnedOnRedis: of three servers two have the agent that a run began with. The run moves
// between these, and when both are killed it waits for its time and ends. The third one
// resumes it, and nothing that was finished runs again.
func TestPinnedOnRedis(t *testing.T) {
	t.Parallel()
	b := newBranches(t, newRedis(t), "--pin-timeout=4s")
	first, _ := b.open(1)
	second, _ := b.open(1)
	third, _ := b.open(2)
	if old, now := b.revisionOf(first), b.revisionOf(third); old != b.revisionOf(second) || old == now {
		t.Fatalf("the revisions are %s, %s and %s", old, b.revisionOf(second), now)
	}
	b.posts(first, "r1", userMessage("u1", "go"))
	b.asked("m1")
	first.kill()
	b.asked("m1")
	var thread struct {
		Status, Cursor string
		Waiting        any
	}
	if getJSON(t, third.url+"/threads/t", &thread); thread.Status != "running" || thread.Waiting != nil {
		t.Errorf("the thread is %+v", thread)
	}
	old := b.revisionOf(second)
	second.kill()
	waiting, watch := b.awaitWaiting(third, thread.Cursor)
	if waiting["revision"] != old {
		t.Errorf("it waits for %v, want %s", waiting, old)
	}
	if getJSON(t, third.url+"/threads/t", &thread); thread.Status != "running" ||
		mustText(t, thread.Waiting) != mustText(t, waiting) {
		t.Errorf("the thread is %+v, the event says %v", thread, waiting)
	}
	if res := b.posts(third, "r2", userMessage("u2", "hello?")); res.StatusCode != http.StatusConflict {
		t.Errorf("a message gets %s", res.Status)
	}
	var end record
	if err := readStream(watch.Body, func(r record) bool { end = r; return false }); err != nil ||
		end.Data["code"] != codes.RevisionGone {
		t.Errorf("the run ends with %s, %v", end.Raw, err)
	}
	if got := lastText(t, b.posts(third, "r3").Body); got != "by m2" {
		t.Errorf("resumed it says %q", got)
	}
	b.asked("m2")
	b.charges()
	if got := b.revisions(third); got["r1"] != old || got["r3"] != b.revisionOf(third) {
		t.Errorf("the runs have the revisions %v", got)
	}
}

// TestPinnedOnFile: a server that starts with another file than it was killed with leaves its
// run alone, however often it starts, and goes on with it when it has the first file again.
func TestPinnedOnFile(t *testing.T) {
	t.Parallel()
	b := newBranches(t, newFile(t))
	p, _ := b.open(1)
	old := b.revisionOf(p)
	b.posts(p, "r1", userMessage("u1", "go"))
	b.asked("m1")
	p.kill()
	p, _ = b.open(2)
	waiting, _ := b.awaitWaiting(p, "")
	if waiting["revision"] != old {
		t.Errorf("it waits for %v, want %s", waiting, old)
	}
	p.kill()
	p, file := b.open(2)
	again, watch := b.awaitWaiting(p, "")
	if mustText(t, again) != mustText(t, waiting) {
		t.Errorf("after a restart it waits as %v, before as %v", again, waiting)
	}
	close(b.free)
	b.write(file, 1)
	p.signal(syscall.SIGHUP)
	if got := lastText(t, watch.Body); got != "by m1" {
		t.Errorf("it says %q", got)
	}
	b.asked("m1")
	b.charges()
	if got := b.revisions(p); got["r1"] != old {
		t.Errorf("the runs have the revisions %v", got)
	}
}
