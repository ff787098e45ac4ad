package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// crashScript is one iteration with three parallel tools and then an answer: one
// tool is idempotent, one is once, and a pure one ends last.
const crashScript = `use update_plan {"title": "A plan", "steps": []} and charge_card {"amount": 1, "currency": ` +
	`"EUR"} and wait {"seconds": 0.08}`

// crashLimit is the longest that a server may take over a run; then it is killed, so
// that a run that never ends is a failure and not a wait.
const crashLimit = time.Minute

// TestCrashPoints kills the server before and after each commit of a run, by the
// commit's own hand, and once more in the takeover. Each time the run completes,
// nothing that was finished is run again, the card is charged at most once, the
// history is well formed and the stream is legal. CI takes every fourth point on one store,
// and others on the other.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		crashing := buildCrashing(t)
		shift := 0
		if strings.HasSuffix(t.Name(), "redis") {
			shift = 1
		}
		for _, c := range testkit.Sample(t, 4, shift, crashTrials(learnPoints(t, crashing, newStore(t)))) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				c.run(t, crashing, newStore(t))
			})
		}
	})
}

// TestReleaseHasNoCrashPoints: the program that people run cannot be told to die.
func TestReleaseHasNoCrashPoints(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{binary: false, buildCrashing(t): true} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(b, []byte("HOLDFAST_CRASH")); got != want {
			t.Errorf("%s mentions HOLDFAST_CRASH: %t, want %t", path, got, want)
		}
	}
}

// buildCrashing is the program with crash points.
func buildCrashing(t *testing.T) string {
	t.Helper()
	path, err := crashing()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newCrashKiller has no server yet. The delays are so long that most points are a
// commit of their own where the machine is not busy.
func newCrashKiller(t *testing.T, store, recovery string) *killer {
	k := &killer{
		T:        t,
		recovery: recovery,
		addr:     redistest.FreeAddr(t),
		store:    store,
		journal:  filepath.Join(t.TempDir(), "journal"),
	}
	k.args = []string{
		"--recover=" + recovery,
		"--demo-delay=10ms",
		"--delta-window=1s",
		"--lease=300ms",
		"--archive-after=1h", // the log must stay as it was written, to be compared with what was seen
		"--demo-journal=" + k.journal,
	}
	return k
}

// startCrashing starts the program with crash points, and returns once it is
// ready or dead.
func (k *killer) startCrashing(crashing, env string) *process {
	k.Helper()
	cmd := exec.Command(crashing, append([]string{"--addr", k.addr, "--store", k.store}, k.args...)...)
	cmd.Env = append(os.Environ(), env)
	p := run(k.T, cmd)
	p.url = "http://" + k.addr
	k.killAfter(p, crashLimit)
	for begun := time.Now(); time.Since(begun) < patience; {
		if res, err := http.Get(p.url + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p
			}
		}
		select {
		case <-p.done:
			return p
		case <-time.After(5 * time.Millisecond):
		}
	}
	k.Fatalf("the server is not ready: %s", p.out)
	return nil
}

// killAfter kills a server that still lives when the time is over, or the test.
func (k *killer) killAfter(p *process, limit time.Duration) {
	timer := time.AfterFunc(limit, func() {
		select {
		case <-p.done:
		default:
			k.Errorf("the server is killed, because it takes longer than %s: %s", limit, p.out)
			p.kill()
		}
	})
	k.Cleanup(func() { timer.Stop(); p.kill() })
}

// died reports whether the process kills itself.
func (p *process) died() bool {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		return false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		p.t.Fatalf("the server was not killed, it ended with %v: %s", p.cmd.ProcessState, p.out)
	}
	return true
}

// learnPoints returns the points that a run of the script passes. All kinds of commits must be
// among them. The sharing of commits is a matter of time, but the points are not, so every
// other run passes the same.
func learnPoints(t *testing.T, crashing, store string) []string {
	t.Helper()
	points := newCrashKiller(t, store, "on").passPoints(crashing)
	for _, label := range []string{"begin 1", "delta 5", "answer 2", "result 3", "checkpoint 2", "finish 1"} {
		if !slices.Contains(points, "before "+label) || !slices.Contains(points, "after "+label) {
			t.Errorf("the run does not pass %q", label)
		}
	}
	if t.Failed() {
		t.Fatalf("the run passes %q", points)
	}
	return points
}

// passPoints runs the script undisturbed and returns the points.
func (k *killer) passPoints(crashing string) []string {
	k.Helper()
	list := filepath.Join(k.TempDir(), "points")
	k.p = k.startCrashing(crashing, "HOLDFAST_CRASH_LIST="+list)
	(&watcher{killer: k, thread: "t", run: "r1"}).post()
	k.p.kill()
	b, err := os.ReadFile(list)
	if err != nil {
		k.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// crashTrial is one run that dies at a point, and perhaps once more at another
// point of the server that takes it over.
type crashTrial struct {
	point    string
	again    string
	recovery string
}

// String is the test's name.
func (c crashTrial) String() string {
	name := c.point
	if c.again != "" {
		name += ", " + c.again
	}
	return strings.ReplaceAll(name, " ", "_") + "/recover=" + c.recovery
}

// crashTrials are all points; the first of each kind and every other one after it
// also without recovery.
func crashTrials(points []string) []crashTrial {
	trials := []crashTrial{
		{"after answer 1", "before takeover 1", "on"}, {"after answer 1", "after takeover 1", "on"},
		{"after answer 1", "before cut 1", "off"}, {"after answer 1", "after cut 1", "off"},
	}
	for _, p := range points {
		trials = append(trials, crashTrial{p, "", "on"})
		if number := p[len(p)-1] - '0'; number%2 == 1 {
			trials = append(trials, crashTrial{p, "", "off"})
		}
	}
	return trials
}

// run kills, starts again, and checks what must be true.
func (c crashTrial) run(t *testing.T, crashing, store string) {
	k := newCrashKiller(t, store, c.recovery)
	w := &watcher{killer: k, thread: "t", run: "r1"}
	k.p = k.startCrashing(crashing, "HOLDFAST_CRASH="+c.point)
	w.post()
	if !k.p.died() {
		t.Fatalf("the server did not die %s: %s", c.point, k.p.out)
	}
	c.recover(w, crashing)
}

// post sends the script and reads until the run ends or the server dies.
func (w *watcher) post() {
	w.Helper()
	res, err := post(w.Context(), w.p.url, input(w.thread, w.run, userMessage("u1", crashScript)))
	if err != nil {
		return // it died before it answered
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		w.Fatalf("%s: post: %d", w.thread, res.StatusCode)
	}
	// The error is the cut connection.
	_ = readStream(res.Body, func(r record) bool { w.take(r); return false })
}

// recover starts the server again, has it finish the run, and checks the run.
func (c crashTrial) recover(w *watcher, crashing string) {
	k := w.killer
	if c.again != "" {
		if k.p = k.startCrashing(crashing, "HOLDFAST_CRASH="+c.again); !k.p.died() {
			k.Fatalf("the server did not die %s: %s", c.again, k.p.out)
		}
	}
	began := c.point != "before begin 1"
	var finished done
	if began {
		finished = k.finished(w.thread)
	}
	mark := k.journalSize()
	k.p = start(k.T, k.addr, k.store, k.args...)
	k.killAfter(k.p, crashLimit)
	if !began {
		// Nothing was accepted, and nothing is left of it: the client asks again.
		var body any
		if code := getJSON(k.T, k.p.url+"/threads/"+w.thread, &body); code != http.StatusNotFound {
			k.Errorf("%s: nothing was committed, but the thread is there: %d %v", w.thread, code, body)
		}
		w.post()
	}
	w.finish()
	w.checkLog()
	w.checkLegal()
	k.checkRepeats(w.thread, finished, k.journalFrom(mark))
	w.checkCharged()
	w.checkScript()
}

// checkLegal: the stream from record 1 is legal AG-UI, and ends in success.
func (w *watcher) checkLegal() {
	w.Helper()
	var decode error
	err := agui.Verify(func(yield func(agui.Event) bool) {
		for _, r := range w.seen {
			ev, err := agui.DecodeEvent([]byte(r.Raw))
			if err != nil {
				decode = fmt.Errorf("record %s, %s: %w", r.ID, r.Raw, err)
				return
			}
			if !yield(ev) {
				return
			}
		}
	})
	if err := errors.Join(decode, err); err != nil {
		w.Errorf("%s: the stream is not legal: %v", w.thread, err)
	}
	end := w.seen[len(w.seen)-1]
	if outcome, _ := end.Data["outcome"].(map[string]any); outcome["type"] != "success" {
		w.Errorf("%s: ended with %s", w.thread, end.Raw)
	}
}

// checkCharged counts in the whole journal: the once tool was started at most
// once, whatever happened.
func (w *watcher) checkCharged() {
	w.Helper()
	started := 0
	for _, line := range w.journalFrom(0) {
		if strings.HasPrefix(line, "tool start name=charge_card thread="+w.thread+" ") {
			started++
		}
	}
	if started > 1 {
		w.Errorf("%s: the card was charged %d times", w.thread, started)
	}
}

// checkScript: all steps of the script are in the history, and each call has
// exactly one result. Answers in whose middle the run was cut off stand there besides.
func (w *watcher) checkScript() {
	w.Helper()
	var body struct {
		Messages []struct {
			Role, ToolCallID string
			ToolCalls        []struct{ ID string }
			Metadata         struct{ Holdfast struct{ Failed bool } }
		}
	}
	if code := getJSON(w.T, w.p.url+"/threads/"+w.thread+"/messages", &body); code != http.StatusOK {
		w.Fatalf("%s: messages: %d", w.thread, code)
	}
	var roles, calls, results []string
	for _, m := range body.Messages {
		if m.Role == "assistant" && m.Metadata.Holdfast.Failed {
			continue
		}
		roles = append(roles, m.Role)
		for _, c := range m.ToolCalls {
			calls = append(calls, c.ID)
		}
		if m.Role == "tool" {
			results = append(results, m.ToolCallID)
		}
	}
	slices.Sort(calls)
	slices.Sort(results)
	if want := []string{
		"user",
		"assistant",
		"tool",
		"tool",
		"tool",
		"assistant",
	}; !slices.Equal(roles, want) || !slices.Equal(calls, results) {
		w.Errorf("%s: the history is %q with the calls %q and results of %q", w.thread, roles, calls, results)
	}
}
