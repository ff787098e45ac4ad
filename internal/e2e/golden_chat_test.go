package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// goldenChat is what a golden store holds of what chats do: how threads are listed, histories
// that branched by themselves, and what people read of a run that failed.
type goldenChat struct {
	Listed   map[string]listed // by thread
	Branched *branched
	Failed   string // the RUN_ERROR of a run
	Snapshot string // of a run that began with answers and a message
}

// listed is how GET /threads describes a thread.
type listed struct {
	Title     string    `json:"title"`
	Hidden    bool      `json:"hidden"`
	CreatedAt time.Time `json:"createdAt"`
}

// branched is a thread whose edited message asked for two calls that were recorded and for
// one that was not, about which a person is asked.
type branched struct {
	Interrupt map[string]any // the question
	Calls     int            // charges before it was edited
}

// The threads of chats.
const (
	chatWaits  = "branched"     // waits with its question
	chatCut    = "branched-cut" // was cut off when the run of a new branch had repeated one of two calls
	chatFailed = "failed"
	chatAnswer = "answered" // the answer came with a message
	chatTitle  = "A title of a person"
)

// chats posts a message, or none, with the policy chat and returns the last record that was
// read.
func chats(
	t *testing.T, p *process, thread, run string, message map[string]any, more map[string]any, stop func(record) bool,
) (last record) {
	t.Helper()
	in := map[string]any{
		"threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": []any{},
		"forwardedProps": map[string]any{"holdfast": map[string]any{"chat": true}},
	}
	if message != nil {
		in["messages"] = []any{message}
	}
	for name, value := range more {
		in[name] = value
	}
	res, err := post(t.Context(), p.url, []byte(mustText(t, in)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, func(r record) bool { last = r; return stop != nil && stop(r) }); err != nil {
		t.Fatal(err)
	}
	return last
}

// chat makes the threads of chats that wait or have ended.
func (g *goldenChat) chat(t *testing.T, p *process) {
	t.Helper()
	chats(t, p, chatWaits, "r1", userMessage("u1", "charge 2"), nil, nil)
	end := chats(t, p, chatWaits, "r2", userMessage("u1", "charge 3"), nil, nil)
	open := interruptsOf(end)
	if len(open) != 1 || open[0]["reason"] != "tool_call" {
		t.Fatalf("the edited message ended with %s", end.Raw)
	}
	g.Branched = &branched{Interrupt: open[0], Calls: 2}
	g.Failed = chats(t, p, chatFailed, "r1", userMessage("u1", "fail"), nil, nil).Raw
	asked := chats(t, p, chatAnswer, "r1", userMessage("u1", "ask me tea or coffee?"), nil, nil)
	resume := []any{
		map[string]any{
			"interruptId": interruptsOf(asked)[0]["id"],
			"status":      "resolved",
			"payload":     map[string]string{"answer": "tea"},
		},
	}
	chats(t, p, chatAnswer, "r2", userMessage("u2", "time"), map[string]any{"resume": resume}, nil)
	g.Snapshot = snapshotOf(t, p, chatAnswer, "r2")
	patch(t, p, chatWaits, `{"title":"`+chatTitle+`"}`)
	patch(t, p, chatFailed, `{"hidden":true}`)
}

// leaveBranch makes the thread that was cut off: its answer is made again, and one of its two
// charges has been repeated. The server's calls take long enough to kill it then.
func (g *goldenChat) leaveBranch(t *testing.T, store, format string, models *goldenProvider) {
	t.Helper()
	p := models.start(t, store, format, filepath.Join(t.TempDir(), "journal"), "--demo-delay=50ms", "--recover=off")
	chats(t, p, chatCut, "r1", userMessage("u1", "charge 2"), nil, nil)
	last := chats(t, p, chatCut, "r2", userMessage("u1", "charge 2"), nil, func(r record) bool {
		return r.kind() == "TOOL_CALL_RESULT"
	})
	if !strings.Contains(last.Raw, "Charged 1.00 EUR") {
		t.Fatalf("the new branch began with %s", last.Raw)
	}
	p.kill()
}

// snapshotOf returns the messages with which a run began, as its log has them; the first of
// two snapshots has none.
func snapshotOf(t *testing.T, p *process, thread, run string) string {
	t.Helper()
	w := &watcher{killer: &killer{T: t, p: p}, thread: thread, run: run}
	w.follow()
	for _, r := range slices.Backward(w.seen) {
		if r.kind() == "MESSAGES_SNAPSHOT" && strings.Contains(r.Raw, `"u2"`) {
			return r.Raw
		}
	}
	t.Fatalf("run %s of %s does not begin with its messages", run, thread)
	return ""
}

func patch(t *testing.T, p *process, thread, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, p.url+"/threads/"+thread,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("PATCH %s %s: %d", thread, body, res.StatusCode)
	}
}

// readListed notes how the threads are listed.
func (g *goldenChat) readListed(t *testing.T, p *process) {
	t.Helper()
	g.Listed = listing(t, p)
	if g.Listed[chatWaits].Title != chatTitle || !g.Listed[chatFailed].Hidden ||
		g.Listed["finished"].Title != "plan 3 steps" {
		t.Fatalf("the threads are listed as %+v", g.Listed)
	}
}

func listing(t *testing.T, p *process) map[string]listed {
	t.Helper()
	var list struct {
		Threads []struct {
			ID string `json:"id"`
			listed
		} `json:"threads"`
	}
	getJSON(t, p.url+"/threads?limit=100", &list)
	out := map[string]listed{}
	for _, info := range list.Threads {
		out[info.ID] = info.listed
	}
	return out
}

// checkChats: the threads are listed as they were, what failed is said in the same words, and
// the open question still knows what happened before the history branched.
func (g *goldenChat) checkChats(t *testing.T, p *process, journal string) {
	t.Helper()
	now := listing(t, p)
	for thread, want := range g.Listed {
		if got := now[thread]; got != want {
			t.Errorf("%s is listed as %+v, want %+v", thread, got, want)
		}
	}
	var last record
	res, err := http.Get(p.url + "/threads/" + chatFailed + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	err = readStream(res.Body, func(r record) bool { last = r; return false })
	res.Body.Close()
	if err != nil || errorOf(t, last.Raw) != errorOf(t, g.Failed) || !strings.Contains(g.Failed, `"hint":"`) {
		t.Errorf("what failed says %s, %v, want %s", last.Raw, err, g.Failed)
	}
	if got := snapshotOf(t, p, chatAnswer, "r2"); got != g.Snapshot {
		t.Errorf("the answered run began with %s, want %s", got, g.Snapshot)
	}
	end := chats(t, p, chatCut, "on", nil, nil, nil)
	var messages json.RawMessage
	getJSON(t, p.url+"/threads/"+chatCut+"/messages", &messages)
	if end.kind() != "RUN_FINISHED" || !strings.Contains(string(messages), "I made 2 charges") ||
		!strings.Contains(string(messages), "Charged 2.00 EUR.") {
		t.Errorf("the branch that was cut off ended with %s, and the messages are %s", end.Raw, messages)
	}
	g.Branched.check(t, p, journal)
}

// errorOf returns what a RUN_ERROR says, without its time and what the run has used.
func errorOf(t *testing.T, raw string) (said struct {
	Message, Code string
	Metadata      struct{ Holdfast struct{ Hint string } }
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &said); err != nil {
		t.Fatal(err)
	}
	return said
}

// check: the question is what it was, and an approval makes its call and no other.
func (b *branched) check(t *testing.T, p *process, journal string) {
	t.Helper()
	var info struct {
		Interrupts []map[string]any `json:"interrupts"`
	}
	getJSON(t, p.url+"/threads/"+chatWaits, &info)
	if len(info.Interrupts) != 1 || mustText(t, info.Interrupts[0]) != mustText(t, b.Interrupt) {
		t.Fatalf("%s asks %s, want %s", chatWaits, mustText(t, info.Interrupts), mustText(t, b.Interrupt))
	}
	happened, _ := b.Interrupt["metadata"].(map[string]any)["happened"].([]any)
	if len(happened) != b.Calls {
		t.Errorf("the question says that %d calls happened, want %d: %v", len(happened), b.Calls, b.Interrupt)
	}
	resume := `{"threadId":"` + chatWaits +
		`","runId":"r3","protocolVersion":"1.0","messages":[],"resume":[{"interruptId":"` +
		fmt.Sprint(b.Interrupt["id"]) +
		`","status":"resolved","payload":{"approved":true}}]}`
	res, err := post(t.Context(), p.url, []byte(resume))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var end record
	if err := readStream(res.Body, func(r record) bool { end = r; return false }); err != nil ||
		end.kind() != "RUN_FINISHED" || !strings.Contains(end.Raw, "success") {
		t.Errorf("the approved call ended with %s, %v", end.Raw, err)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	var charges []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "charge ") {
			charges = append(charges, line)
		}
	}
	if len(charges) != 1 || !strings.Contains(charges[0], "amount=3.00") {
		t.Errorf("the charges are %q, want the one that was approved", charges)
	}
}
