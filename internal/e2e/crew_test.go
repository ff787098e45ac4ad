package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// eachStore runs a test on files and on Redis, side by side. It gets new stores from
// newStore.
func eachStore(t *testing.T, test func(t *testing.T, newStore func(*testing.T) string)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, newFile)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, newRedis)
	})
}

// crew is workers on one store, of which one is spoken to. On Redis another one
// stands by and takes over what a dead one has left; on a file the next one begins
// after the death.
type crew struct {
	*testing.T
	store, journal string
	// holds is a folder that says where workers stop for ever.
	holds string
	args  []string
	// crash is the crash point at which the first worker kills itself; empty for none.
	crash   string
	p       *member
	standby *member
	started int
	kills   int64
	read    int64 // how much of the journal was looked at
}

// member is a worker with its name in the journal.
type member struct {
	*process
	name string
}

func newCrew(t *testing.T, store string, args ...string) *crew {
	return &crew{T: t, store: store, journal: filepath.Join(t.TempDir(), "journal"), holds: t.TempDir(), args: args}
}

func (c *crew) shared() bool { return !strings.HasPrefix(c.store, "file:") }

// begin starts the first worker, and on Redis the one that stands by.
func (c *crew) begin() *crew {
	c.Helper()
	c.p = c.start()
	if c.shared() {
		c.standby = c.start()
	}
	return c
}

// start starts one more worker, with more arguments than those of all.
func (c *crew) start(args ...string) *member {
	c.Helper()
	m := &member{name: fmt.Sprintf("p%d", c.started)}
	c.started++
	args = append([]string{"--lease=300ms", "--journal=" + c.journal, "--holds=" + c.holds, "--name=" + m.name},
		append(c.args, args...)...)
	if m.name == "p0" && c.crash != "" {
		m.process = c.launchCrashing(args...).ready()
	} else {
		m.process = launch(c.T, workerBinary, redistest.FreeAddr(c.T), c.store, args...).ready()
	}
	return m
}

// launchCrashing starts a worker that kills itself.
func (c *crew) launchCrashing(args ...string) *process {
	c.Helper()
	program, err := crashingWorker()
	if err != nil {
		c.Fatal(err)
	}
	addr := redistest.FreeAddr(c.T)
	cmd := exec.Command(program, append([]string{"--addr", addr, "--store", c.store}, args...)...)
	cmd.Env = append(os.Environ(), "HOLDFAST_CRASH="+c.crash)
	p := run(c.T, cmd)
	p.url = "http://" + addr
	return p
}

// hold has the first worker stop for ever that comes to a moment of an iteration.
func (c *crew) hold(thread, moment string, iteration int) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.holds, fmt.Sprintf("%s.%s.%d", thread, moment, iteration)), nil,
		0o600); err != nil {
		c.Fatal(err)
	}
}

// kill ends the worker of that name, and has another one in its place. It reports
// whether it still lived.
func (c *crew) kill(name string) bool {
	c.kills++
	c.Helper()
	switch {
	case c.p.name == name && c.shared():
		c.p.kill()
		c.p = c.standby
		c.standby = c.start()
	case c.p.name == name:
		c.p.kill()
		c.p = c.start()
	case c.standby != nil && c.standby.name == name:
		c.standby.kill()
		c.standby = c.start()
	default:
		return false
	}
	return true
}

// stop kills all, and returns what they share.
func (c *crew) stop() store.Store {
	c.Helper()
	for _, m := range []*member{c.p, c.standby} {
		if m != nil {
			m.kill()
		}
	}
	return openStore(c.T, c.store)
}

// lines are all lines of the journal that begin so.
func (c *crew) lines(prefix string) []string {
	c.Helper()
	b, err := os.ReadFile(c.journal)
	if err != nil {
		c.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, "\n") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// news are the lines that nobody has looked at.
func (c *crew) news() []string {
	c.Helper()
	b, err := os.ReadFile(c.journal)
	if err != nil {
		c.Fatal(err)
	}
	b = b[c.read:]
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	c.read += int64(len(b))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// patience is how long anything that has to happen may take.
const patience = 60 * time.Second

// awaitLines waits for so many lines that begin so.
func (c *crew) awaitLines(prefix string, n int) {
	c.Helper()
	wait.For(c.T, func() error {
		if len(c.lines(prefix)) < n {
			return fmt.Errorf("the journal does not say %q %d times:\n%s", prefix, n, strings.Join(c.lines(""), "\n"))
		}
		return nil
	})
}

// talk is a person who talks to an agent on a thread, whichever worker answers.
type talk struct {
	*crew
	agent, thread string
	// watch looks at what happens meanwhile, and may kill.
	watch func()
	// seen are the records by their id, in order.
	seen  map[string]record
	order []string
	// answers are by the reason of the question; asked are the questions, each once.
	answers map[string]string
	asked   map[string]map[string]any
	runs    int
}

func (c *crew) talk(agent, thread string) *talk {
	return &talk{
		crew: c, agent: agent, thread: thread, watch: func() {},
		seen: map[string]record{}, asked: map[string]map[string]any{}, answers: map[string]string{},
	}
}

// says posts a text, answers what is asked, and returns how it ends.
func (k *talk) says(text string) record {
	k.Helper()
	return k.goOn("messages", []any{userMessage(fmt.Sprintf("u%d", k.runs), text)})
}

// resumes posts no messages.
func (k *talk) resumes() record { return k.goOn("messages", []any{}) }

// answersAll answers the questions that are open.
func (k *talk) answersAll(end record) record { return k.goOn("resume", k.resume(end)) }

// goOn posts until the run is over and no question that can be answered is open.
func (k *talk) goOn(member string, value any) record {
	k.Helper()
	for {
		end := k.posts(member, value)
		resume := k.resume(end)
		if len(resume) == 0 {
			return end
		}
		member, value = "resume", resume
	}
}

// posts posts a run input until it has led to an end. To post it again, here or
// elsewhere, starts nothing.
func (k *talk) posts(member string, value any) record {
	k.Helper()
	k.runs++
	in := map[string]any{
		"threadId":        k.thread,
		"runId":           fmt.Sprintf("r%d", k.runs),
		"protocolVersion": "1.0",
		"messages":        []any{},
	}
	in[member] = value
	body := []byte(mustText(k.T, in))
	for begun := time.Now(); time.Since(begun) < patience; {
		if end, over := k.exchange(body); over {
			return end
		}
	}
	k.Fatalf("%s: no end of %s\nworker: %s", k.thread, body, k.p.out)
	return record{}
}

// exchange is one request and what is streamed as its answer. It is not over if the
// worker dies.
func (k *talk) exchange(body []byte) (end record, over bool) {
	k.Helper()
	res, err := postTo(k.Context(), k.p.url, k.agent, body)
	if err != nil {
		k.watch()
		return end, false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var refused map[string]any
		if err := json.NewDecoder(res.Body).Decode(&refused); err != nil {
			return end, false // it died while it said so
		}
		k.Fatalf("%s: %s: %d %v", k.thread, body, res.StatusCode, refused)
	}
	frames := make(chan record)
	go func() {
		defer close(frames)
		// The error is the cut connection.
		_ = readStream(res.Body, func(r record) bool { frames <- r; return false })
	}()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case r, more := <-frames:
			if !more {
				return end, end.ID != "" && (end.kind() == "RUN_FINISHED" || end.kind() == "RUN_ERROR")
			}
			k.take(r)
			end = r
		case <-look.C:
			k.watch()
		}
	}
}

func (k *talk) take(r record) {
	if _, known := k.seen[r.ID]; !known && r.ID != "" {
		k.seen[r.ID] = r
		k.order = append(k.order, r.ID)
	}
	for _, q := range interruptsOf(r) {
		k.asked[q["id"].(string)] = q
	}
}

func interruptsOf(r record) []map[string]any {
	outcome, _ := r.Data["outcome"].(map[string]any)
	list, _ := outcome["interrupts"].([]any)
	out := make([]map[string]any, len(list))
	for i, q := range list {
		out[i], _ = q.(map[string]any)
	}
	return out
}

// resume answers what the record asks; nothing where there is no answer.
func (k *talk) resume(end record) []map[string]any {
	var out []map[string]any
	for _, q := range interruptsOf(end) {
		if answer, ok := k.answers[q["reason"].(string)]; ok {
			out = append(out, map[string]any{"interruptId": q["id"], "status": "resolved",
				"payload": json.RawMessage(answer)})
		}
	}
	return out
}

// askedFor are the questions of a reason.
func (k *talk) askedFor(reason string) (out []map[string]any) {
	for _, q := range k.asked {
		if q["reason"] == reason {
			out = append(out, q)
		}
	}
	return out
}

// customs are the CUSTOM records of a name.
func (k *talk) customs(name string) (out []record) {
	for _, id := range k.order {
		if r := k.seen[id]; r.kind() == "CUSTOM" && r.Data["name"] == name {
			out = append(out, r)
		}
	}
	return out
}

// wantEnd checks how a run ended: an error's code, or "success" or "interrupt".
func (k *talk) wantEnd(end record, want string) {
	k.Helper()
	got, _ := end.Data["code"].(string)
	if outcome, ok := end.Data["outcome"].(map[string]any); ok {
		got, _ = outcome["type"].(string)
	}
	if got != want {
		k.Errorf("%s: ended with %s, want %s\nworker: %s", k.thread, end.Raw, want, k.p.out)
	}
}

// postTo sends a run input to an agent.
func postTo(ctx context.Context, url, agent string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/agents/"+agent+"/runs", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}
