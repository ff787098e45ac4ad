package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
)

// One run with tools in every step, on three servers, whose owner is killed in each of its
// steps. A person watches it with the official client and clients/js behind a balancer, and
// at the end sees what they would have seen of a run that nobody disturbs; every finished
// call was made once. make thousand has a thousand steps, and CI a few.

// killedSteps is how many steps there are in CI. They must be an even number: the last answer
// lists the last eight results, which are those of three whole steps then.
const killedSteps = 12

// The moments of a step at which its owner is killed.
const (
	inAnswer = "in the model's answer"
	inTool   = "while a tool works"
	atResult = "around a result"
)

// moments are what is waited for, and how long after it the owner is killed at most.
var killMoments = []struct {
	name  string
	after string
	most  time.Duration
}{
	{inAnswer, signModel, 150 * time.Millisecond},
	{inTool, signTool, 30 * time.Millisecond},
	{atResult, signResult, 15 * time.Millisecond},
}

const thousandThread = "thousand"

// followed is what clients/js/test/follow.mjs writes: what the client has seen.
type followed struct {
	Messages   []map[string]any
	State      any
	Events     map[string]int
	Reconnects int
	Longest    int // milliseconds without an event
	Error, End string
	Warnings   []string
}

// hunt is a run whose owner is killed in each step.
type hunt struct {
	*testing.T
	*replicas
	random *rand.Rand
	steps  int
	redis  string

	owner   string   // "" while nobody is known to be
	owners  []string // one after the other
	step    int      // the newest one
	models  int      // calls of the model
	dead    map[string]time.Time
	killed  map[string]int // by moment
	silent  durations      // from a death to the takeover
	skipped int            // kills that had to wait until another server was ready
}

// take takes in a sign. A process that does something for the run owns it.
func (h *hunt) take(s sign) {
	r := h.named(s.process)
	switch s.what {
	case signReady:
		if r != nil {
			r.ready = true
		}
		return
	case signModel:
		h.models++
		h.step = max(h.step, s.step)
	}
	if _, dead := h.dead[s.process]; dead || s.what == signResult || s.process == h.owner {
		return
	}
	if h.owner != "" {
		h.Errorf("step %d: %s %s, while %s owns the run and lives", h.step, s.process, s.what, h.owner)
	}
	if n := len(h.owners); n > 0 && h.owner == "" {
		h.silent = append(h.silent, s.at.Sub(h.dead[h.owners[n-1]]))
	}
	h.owner, h.owners = s.process, append(h.owners, s.process)
}

// next waits for a sign, and takes it in.
func (h *hunt) next() sign {
	h.Helper()
	select {
	case s := <-h.signs:
		h.take(s)
		return s
	case <-time.After(patience):
		said := h.found()
		for _, r := range h.all {
			said = append(said, r.name+": "+lastLines(r.out.String(), 12))
		}
		h.Fatalf("nothing happens in step %d, which %q owns:\n%s", h.step, h.owner, strings.Join(said, "\n"))
		panic("unreachable")
	}
}

// found is what the store says of who owns what, for a reader who looks for the reason of
// silence.
func (h *hunt) found() []string {
	s, err := redisstore.Open(h.Context(), h.redis, redisstore.Options{})
	if err != nil {
		return []string{err.Error()}
	}
	defer s.Close()
	head, err := s.Head(h.Context(), store.ThreadKey{Tenant: "default", Thread: thousandThread})
	said := []string{fmt.Sprintf("the head: %+v, %v", head, err)}
	owned, err := s.Owned(h.Context())
	said = append(said, fmt.Sprintf("owned: %+v, %v", owned, err))
	for _, o := range owned {
		lease, err := s.Lease(h.Context(), o.Process)
		said = append(said, fmt.Sprintf("the lease of %s: %+v, %v", o.Process, lease, err))
	}
	return said
}

// pass takes in what happens in a time.
func (h *hunt) pass(d time.Duration) {
	late := time.After(d)
	for {
		select {
		case s := <-h.signs:
			h.take(s)
		case <-late:
			return
		}
	}
}

// kill kills the owner in a step, at a moment that is drawn by lot, and starts it again.
func (h *hunt) kill(step int) {
	h.Helper()
	m := killMoments[h.random.IntN(len(killMoments))]
	after := time.Duration(h.random.Int64N(int64(m.most)))
	for {
		if s := h.next(); s.process == h.owner && h.step >= step && (s.what == m.after || h.step > step) {
			break
		}
	}
	h.pass(after)
	others := func(r *replica) bool { return r.ready && r.name != h.owner }
	if !slices.ContainsFunc(h.all, others) {
		for h.skipped++; !slices.ContainsFunc(h.all, others); {
			h.next()
		}
	}
	r := h.named(h.owner)
	h.killed[m.name]++
	h.dead[r.name] = time.Now()
	r.kill()
	h.owner = ""
	h.start(r)
}

// follow runs the official client until the run is over.
func follow(t *testing.T, url, thread, words string, more ...string) (f followed) {
	t.Helper()
	f, err := startFollowing(t, url, thread, words, more...)()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// startFollowing starts the official client, and returns a function that waits until the
// run is over.
func startFollowing(t *testing.T, url, thread, words string, more ...string) func() (followed, error) {
	t.Helper()
	folder := testkit.NPM(t, "clients/js")
	cmd := exec.CommandContext(t.Context(), "node",
		append([]string{"test/follow.mjs", url + "/runs", thread, words}, more...)...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	out, err := newOutput(), make(chan error, 1)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { err <- cmd.Wait() }()
	return func() (f followed, _ error) {
		if err := <-err; err != nil {
			return f, fmt.Errorf("the client ended: %w", err)
		}
		return f, json.Unmarshal([]byte(out.String()), &f)
	}
}

// stored reads of the store who has stored which result. owners is how many have written.
func (h *hunt) stored(s store.Store) (results []result, owners, records int) {
	h.Helper()
	key := store.ThreadKey{Tenant: "default", Thread: thousandThread}
	var tags []string
	tools := map[string]string{}
	for after := (store.Cursor{}); ; {
		list, err := s.Records(h.Context(), key, after, 1024)
		if err != nil {
			h.Fatal(err)
		}
		if len(list) == 0 {
			return results, len(tags), records
		}
		for _, rec := range list {
			after, records = rec.Cursor, records+1
			if len(tags) == 0 || tags[len(tags)-1] != rec.Tag {
				tags = append(tags, rec.Tag)
			}
			var e struct{ Type, ToolCallID, ToolCallName string }
			if err := json.Unmarshal(rec.Data, &e); err != nil {
				continue // it is no event, but what stands for one
			}
			switch e.Type {
			case "TOOL_CALL_START":
				tools[e.ToolCallID] = e.ToolCallName
			case "TOOL_CALL_RESULT":
				results = append(results, result{tools[e.ToolCallID], len(tags) - 1})
			}
		}
	}
}

// undisturbed is what the client shows of the same run if nobody is killed. Words are streamed
// many at a time: the client takes as long for one as for a hundred.
func undisturbed(t *testing.T, words string) followed {
	t.Helper()
	signs := make(chan sign, 1<<16)
	service := newOutside(t, 0, signs)
	rs := newReplicas(t, 1, newRedis(t), signs, "--config="+service.agents(), "--demo-delay=0s", "--delta-window=1s",
		"--max-iterations=2000")
	defer rs.all[0].kill()
	for s := range signs {
		if s.what == signReady {
			break
		}
	}
	return follow(t, rs.all[0].url, thousandThread, words)
}

// TestKilledInEachStep kills the owner in each step.
func TestKilledInEachStep(t *testing.T) {
	t.Parallel()
	steps, seed := setting(t, "HOLDFAST_STEPS", killedSteps),
		uint64(setting(t, "HOLDFAST_SEED", int(time.Now().UnixNano()%1e6)))
	t.Logf("the seed is %d", seed)
	words := fmt.Sprintf("plan %d steps", steps)
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec").URL()
	signs := make(chan sign, 1<<17)
	service := newOutside(t, 25*time.Millisecond, signs)
	args := []string{
		"--config=" + service.agents(),
		"--demo-delay=5ms",
		"--delta-window=20ms",
		"--max-iterations=2000",
		"--archive-after=1h",
	}
	if os.Getenv("HOLDFAST_STEPS") == "" {
		// A process that stands still in CI for longer than the default shall not be taken for dead.
		args = append(args, "--lease=10s")
	}
	h := &hunt{
		T:        t,
		random:   rand.New(rand.NewPCG(seed, 1)),
		steps:    steps,
		redis:    redis,
		dead:     map[string]time.Time{},
		killed:   map[string]int{},
		replicas: newReplicas(t, 3, redis, signs, args...),
	}
	for slices.ContainsFunc(h.all, func(r *replica) bool { return !r.ready }) {
		h.next()
	}
	begun := time.Now()
	ended := startFollowing(t, balance(t, []string{h.all[0].addr, h.all[1].addr, h.all[2].addr}), thousandThread, words)
	for step := range steps {
		if h.step == steps { // while a kill waited for another server, the run went on; it may be over
			break
		}
		h.kill(step)
	}
	for h.step < steps { // the last answer is begun
		h.next()
	}
	got, err := ended()
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	for len(h.signs) > 0 {
		h.take(<-h.signs)
	}
	h.judge(redis, service, got, undisturbed(t, words), took)
}

// TestTheClientAloneLosesTheRun: without clients/js, the first death is the end of what the
// client shows, and that is found.
func TestTheClientAloneLosesTheRun(t *testing.T) {
	t.Parallel()
	signs := make(chan sign, 1<<16)
	service := newOutside(t, 25*time.Millisecond, signs)
	rs := newReplicas(t, 1, newRedis(t), signs, "--config="+service.agents(), "--demo-delay=5ms")
	var ended func() (followed, error)
	const words = "plan 2 steps"
	for s := range signs {
		if s.what == signReady {
			ended = startFollowing(t, rs.all[0].url, "alone", words, "plain")
		}
		if s.what == signTool {
			break
		}
	}
	rs.all[0].kill()
	got, err := ended()
	if err != nil {
		t.Fatal(err)
	}
	if differs(transcript(t, got.Messages), transcript(t, undisturbed(t, words).Messages)) == "" {
		t.Error("the official client alone shows the whole run, and its server was killed")
	}
}

// judge checks what came of it, and logs the table.
func (h *hunt) judge(redis string, service *outside, got, want followed, took time.Duration) {
	h.Helper()
	if got.End != "success" || got.Error != "" || len(got.Warnings) > 0 {
		h.Errorf("the run ended with %q, the client with %q and %q", got.End, got.Error, got.Warnings)
	}
	s, err := redisstore.Open(h.Context(), redis, redisstore.Options{})
	if err != nil {
		h.Fatal(err)
	}
	defer s.Close()
	results, owners, records := h.stored(s)
	if owners != len(h.owners) {
		h.Errorf("%d processes have written the log, and %d were seen to own the run", owners, len(h.owners))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &account{owners: h.owners, effects: append(service.effects(), h.updates...), results: results}
	c := a.check()
	for _, complaint := range c.complaints {
		h.Error(complaint)
	}
	if d := differs(transcript(h.T, got.Messages), transcript(h.T, want.Messages)); d != "" {
		h.Errorf("the client shows something else than of an undisturbed run: %s", d)
	}
	if g, w := mustText(h.T, got.State), mustText(h.T, want.State); g != w {
		h.Errorf("the state is %s, and should be %s", g, w)
	}
	h.Log("\n" + h.table(c, got, records, took))
}

// table is the table in docs/durability.md.
func (h *hunt) table(c *calls, got followed, records int, took time.Duration) string {
	row := func(what, format string, args ...any) string {
		return fmt.Sprintf("| %s | %s |", what, fmt.Sprintf(format, args...))
	}
	early, late := slices.Clone(h.silent[:min(len(h.silent), 100)]), slices.Clone(h.silent[max(0, len(h.silent)-100):])
	all := slices.Clone(h.silent)
	kills := 0
	var moments []string
	for _, m := range killMoments {
		kills += h.killed[m.name]
		moments = append(moments, fmt.Sprintf("%d %s", h.killed[m.name], m.name))
	}
	return strings.Join([]string{
		"| | |",
		"|---|---|",
		row("steps, and deaths of the owner with kill -9", "%d, %d: %s", h.steps, kills, strings.Join(moments, ", ")),
		row("takeovers; from the death to the next sign of life", "%d; p50 %s, p99 %s, at worst %s", len(all),
			all.at(50), all.at(99), all.at(100)),
		row("in the first hundred, and in the last hundred", "p50 %s, p90 %s; p50 %s, p90 %s", early.at(50),
			early.at(90), late.at(50), late.at(90)),
		row("calls of tools: needed, made, looked up; work done", "%d, %d, %d; %d", c.needed, c.sent, c.lookedUp,
			c.did),
		row("finished calls that were made again, work that was done twice", "%d", len(c.complaints)),
		row("calls of the model: needed, made", "%d, %d", h.steps+1, h.models),
		row("records of the log", "%d", records),
		row("what the client saw: connections lost, snapshots, the longest silence", "%d, %d, %s", got.Reconnects,
			got.Events["MESSAGES_SNAPSHOT"], time.Duration(got.Longest)*time.Millisecond),
		row("its messages at the end, and those of a run that nobody disturbs", "%d, the same", len(got.Messages)),
		row("all of it took", "%s", took.Round(time.Second)),
	}, "\n")
}
