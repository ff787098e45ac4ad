package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Servers of this build and of the next one share a Redis, while conversations go on at both
// (mixed_talk_test.go): they are killed and shut down in turn, replaced by the other build and
// back, and at last step to the data format of the next one. That build is this one with an
// invented format, which it writes beside today's; see package thread. make mixed does all of
// it several times; in CI each is done once, or less.

// workers is how many conversations go on at a time.
const workers = 8

// The builds.
const (
	current = "this"
	next    = "the next"
)

// mixed are servers of both builds on one Redis, with conversations at all of them.
type mixed struct {
	*testing.T
	store    string
	programs map[string]string
	journal  string
	addrs    []string
	servers  []*process
	builds   []string
	rows     []mixedRow

	mu    sync.Mutex
	rand  *rand.Rand
	count mixedCount
	ended chan struct{} // a conversation has ended
	talks int
	// claims are the calls that were made, as their results say, and charges counts all of
	// them.
	claims  []string
	charges int
	// finished has the calls whose results somebody has seen, with the size of the journal
	// then, and again counts all calls that began again.
	finished map[string]int64
	again    int
}

// mixedCount is what has happened in a stage.
type mixedCount struct {
	runs, records, handed, taken, again      int
	lost, doubled, effectsLost, effectsTwice int
}

// mixedRow is a row of the table: all stages of a name.
type mixedRow struct {
	name string
	mixedCount
}

func (r *mixedRow) add(c *mixedCount) {
	r.runs, r.records, r.handed, r.taken, r.again = r.runs+c.runs, r.records+c.records, r.handed+c.handed, r.taken+
		c.taken, r.again+c.again
	r.lost, r.doubled, r.effectsLost, r.effectsTwice = r.lost+c.lost, r.doubled+c.doubled, r.effectsLost+
		c.effectsLost, r.effectsTwice+c.effectsTwice
}

// newMixed starts servers of these builds. The first is of this build in any case, so that the
// store has its data format.
func newMixed(t *testing.T, seed uint64, builds ...string) *mixed {
	t.Helper()
	path, err := nextBuild()
	if err != nil {
		t.Fatal(err)
	}
	m := &mixed{
		T:     t,
		store: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec").URL(),
		programs: map[string]string{
			current: binary,
			next:    path,
		},
		journal:  filepath.Join(t.TempDir(), "journal"),
		rand:     rand.New(rand.NewPCG(seed, 0)),
		ended:    make(chan struct{}, 1<<16),
		finished: map[string]int64{},
	}
	for i, build := range builds {
		m.addrs = append(m.addrs, redistest.FreeAddr(t))
		m.servers, m.builds = append(m.servers, nil), append(m.builds, "")
		m.start(i, build)
	}
	return m
}

// start starts a server, with more arguments.
func (m *mixed) start(i int, build string, args ...string) {
	m.Helper()
	args = append([]string{"--lease=1s", "--demo-delay=4ms", "--demo-journal=" + m.journal}, args...)
	m.servers[i] = launch(m.T, m.programs[build], m.addrs[i], m.store, args...).ready()
	m.builds[i] = build
}

// replace ends a server, and starts one of a build in its place once some conversations have
// ended without it.
func (m *mixed) replace(i int, sig syscall.Signal, build string, args ...string) {
	m.Helper()
	m.end(i, sig)
	m.goOn(1)
	m.start(i, build, args...)
	m.goOn(2)
}

// end ends a server.
func (m *mixed) end(i int, sig syscall.Signal) {
	m.Helper()
	if err := m.servers[i].cmd.Process.Signal(sig); err != nil {
		m.Fatal(err)
	}
	<-m.servers[i].done
	if code := m.servers[i].cmd.ProcessState.ExitCode(); sig == syscall.SIGTERM && code != 0 {
		m.Errorf("a server of %s build exits with %d: %s", m.builds[i], code, lastLines(m.servers[i].out.String(), 20))
	}
}

// goOn waits until so many conversations have ended.
func (m *mixed) goOn(n int) {
	m.Helper()
	for range n {
		select {
		case <-m.ended:
		case <-time.After(patience):
			m.Fatal("no conversation comes to its end")
		}
	}
}

// random returns a number below n.
func (m *mixed) random(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

// tally changes the counts.
func (m *mixed) tally(change func(*mixedCount)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.count)
}

// stage has conversations go on at all servers while what happens, checks them, and adds a
// row to the table.
func (m *mixed) stage(name string, happens func()) {
	m.Helper()
	m.count = mixedCount{}
	ctx, stop := context.WithCancel(m.Context())
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for ctx.Err() == nil {
				m.mu.Lock()
				m.talks++
				n := m.talks
				m.mu.Unlock()
				m.converse(n)
				m.ended <- struct{}{}
			}
		})
	}
	m.goOn(workers / 2)
	happens()
	stop()
	work.Wait()
	for len(m.ended) > 0 {
		<-m.ended
	}
	m.checkEffects()
	c := m.count
	if !slices.ContainsFunc(m.rows, func(r mixedRow) bool { return r.name == name }) {
		m.rows = append(m.rows, mixedRow{name: name})
	}
	m.rows[slices.IndexFunc(m.rows, func(r mixedRow) bool { return r.name == name })].add(&c)
	if c.lost+c.doubled+c.effectsLost+c.effectsTwice > 0 {
		m.Errorf("%s: %+v", name, c)
	}
}

// checkEffects reads the journal: what was charged twice, or was not although its result says
// so, which calls began again, and whether one of these had finished, as somebody had seen.
func (m *mixed) checkEffects() {
	m.Helper()
	text, err := os.ReadFile(m.journal)
	if err != nil {
		m.Fatal(err)
	}
	keys, starts, made := map[string]int{}, map[string]int{}, map[string]bool{}
	at := int64(0)
	for line := range strings.Lines(string(text)) {
		f := fields(line)
		call := f["thread"] + " " + f["call"]
		switch {
		case strings.HasPrefix(line, "charge "):
			if keys[f["key"]]++; keys[f["key"]] > 1 {
				m.count.effectsTwice++
				m.Errorf("charged twice: %s", line)
			}
		case strings.HasPrefix(line, "tool start "):
			if starts[call]++; starts[call] > 1 && f["name"] != "ask_person" {
				m.count.again++
			}
			if seen, finished := m.finished[call]; finished && at > seen {
				m.count.effectsTwice++
				m.Errorf("a finished call began again: %s", line)
			}
		case strings.HasPrefix(line, "tool end ") && f["outcome"] == "ok":
			made[call] = made[call] || keys[f["key"]] > 0
		}
		at += int64(len(line))
	}
	m.count.again, m.again = m.count.again-m.again, m.count.again
	for _, call := range m.claims {
		if !made[call] {
			m.count.effectsLost++
			m.Errorf("the result of %s says that it was charged, and it was not", call)
		}
	}
	m.charges, m.claims = m.charges+len(m.claims), nil
}

// finish notes that somebody has seen the result of a call.
func (m *mixed) finish(call string) {
	info, err := os.Stat(m.journal)
	if err != nil {
		m.Error(err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.finished[call]; !known {
		m.finished[call] = info.Size()
	}
}

// written returns the data format that a server of this build writes, as its metrics say.
func (m *mixed) written(i int) string {
	m.Helper()
	res, err := http.Get(m.servers[i].url + "/metrics")
	if err != nil {
		m.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		m.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^holdfast_data_format_written (\S+)$`).FindSubmatch(text)
	if found == nil {
		m.Fatalf("no metric says which format is written:\n%s", text)
	}
	return string(found[1])
}

// awaitWritten waits until a server writes the format, which it learns when it renews its
// lease.
func (m *mixed) awaitWritten(i int, format string) {
	m.Helper()
	wait.For(m.T, func() error {
		if written := m.written(i); written != format {
			out := lastLines(m.servers[i].out.String(), 20)
			return fmt.Errorf("server %d writes format %s, want %s: %s", i, written, format, out)
		}
		return nil
	})
}

// sameEverywhere: every thread reads the same at all servers.
func (m *mixed) sameEverywhere(threads []string) {
	m.Helper()
	for _, thread := range threads {
		var first []byte
		for i, p := range m.servers {
			var body json.RawMessage
			if code := getJSON(m.T, p.url+"/threads/"+thread+"/messages", &body); code != http.StatusOK {
				m.Errorf("%s cannot be read at a server of %s build: %d %s", thread, m.builds[i], code, body)
			} else if first == nil {
				first = body
			} else if !bytes.Equal(first, body) {
				m.Errorf("%s is not the same at a server of %s build:\n%s\n%s", thread, m.builds[i], body, first)
			}
		}
	}
}

// TestMixedBuilds: whatever becomes of servers of two builds, nothing is lost or done twice.
// CI takes one of the two, in short.
func TestMixedBuilds(t *testing.T) {
	t.Parallel()
	rounds, seed := setting(t, "HOLDFAST_MIXED", 0),
		uint64(setting(t, "HOLDFAST_MIXED_SEED", int(time.Now().UnixNano()%1e6)))
	for _, c := range testkit.Sample(t, 2, 0, []struct {
		name string
		test func(t *testing.T, rounds int, seed uint64)
	}{{"side by side", testSideBySide}, {"rolling upgrade", testRollingUpgrade}}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			c.test(t, rounds, seed)
		})
	}
}

// testSideBySide: two servers of each build, which are killed and shut down in turn, take
// over from each other and show each other's runs.
func testSideBySide(t *testing.T, rounds int, seed uint64) {
	m := newMixed(t, seed, current, current, next, next)
	each := func(sig syscall.Signal, slots ...int) func() {
		return func() {
			for range max(rounds, 1) {
				for _, i := range slots {
					m.replace(i, sig, m.builds[i])
				}
			}
		}
	}
	waiting := m.sleepers("a")
	if rounds > 0 {
		m.stage("nobody leaves", func() { m.goOn(10 * rounds) })
		if m.count.handed+m.count.taken > 0 {
			t.Errorf("living servers were taken for dead: %+v", m.count)
		}
		m.stage("killed (kill -9), this build", each(syscall.SIGKILL, 0, 1))
		m.stage("killed (kill -9), the next build", each(syscall.SIGKILL, 2, 3))
		m.stage("shut down (SIGTERM), this build", each(syscall.SIGTERM, 0, 1))
		m.stage("shut down (SIGTERM), the next build", each(syscall.SIGTERM, 2, 3))
	} else {
		m.stage("killed or shut down in turn", func() {
			signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}
			for i, slot := range []int{0, 2} {
				m.replace(slot, signals[(int(seed)+i)%2], m.builds[slot])
			}
		})
	}
	m.wake(waiting)
	m.print()
}

// testRollingUpgrade: servers are replaced by the next build one after the other, back again,
// and once more; then all of them step to its data format, which waits for the last of this
// build.
func testRollingUpgrade(t *testing.T, rounds int, seed uint64) {
	builds := []string{current, current}
	if rounds > 0 {
		builds = append(builds, current)
	}
	m := newMixed(t, seed, builds...)
	roll := func(sig syscall.Signal, build string, args ...string) func() {
		return func() {
			for i := range m.servers {
				m.replace(i, sig, build, args...)
			}
		}
	}
	all := []string{}
	keep := func(waiting []*sleeper) []*sleeper {
		for _, w := range waiting {
			all = append(all, w.thread)
		}
		return waiting
	}
	for n := range max(rounds, 1) {
		waiting := keep(m.sleepers(fmt.Sprint("before", n)))
		m.stage("the first roll, to the next build", roll(syscall.SIGTERM, next))
		m.wake(waiting)
		waiting = keep(m.sleepers(fmt.Sprint("new", n)))
		m.stage("all killed at once, and rolled back", func() {
			for i := range m.servers {
				m.end(i, syscall.SIGKILL)
			}
			for i := range m.servers {
				m.start(i, current)
			}
			m.goOn(6)
		})
		m.wake(waiting)
		m.sameEverywhere(all)
		if rounds > 0 {
			m.stage("to the next build once more", roll(syscall.SIGKILL, next))
			m.stage("rolled back one after the other", roll(syscall.SIGTERM, current))
		}
	}
	waiting := keep(m.sleepers("last"))
	m.stage("the second roll, to its data format", func() {
		for i := range m.servers[1:] {
			m.replace(i+1, syscall.SIGTERM, next, "--data-format=newest")
		}
		if got := m.written(1); got != strconv.Itoa(thread.Format) {
			t.Errorf("while a server of this build lives, format %s is written", got)
		}
		m.servers[1].awaitOutput(func(text string) bool {
			return strings.Contains(text, "waits for servers that do not read it")
		}, nil)
		m.replace(0, syscall.SIGTERM, next)
		for i := range m.servers {
			m.awaitWritten(i, strconv.Itoa(thread.Format+1))
		}
		m.goOn(6)
	})
	m.wake(waiting)
	m.sameEverywhere(all)
	m.tooLate()
	m.print()
}

// tooLate: a server of this build that comes after the step says so and does not start, and
// leaves the threads to the others.
func (m *mixed) tooLate() {
	m.Helper()
	m.begin(m.servers[0].url, "after", "r1", "plan 6 steps")
	late := launch(m.T, m.programs[current], redistest.FreeAddr(m.T), m.store, "--lease=1s",
		"--demo-journal="+m.journal)
	<-late.done
	want := fmt.Sprintf("other servers write data of format %d into this store", thread.Format+1)
	if code := late.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(late.out.String(), want) {
		m.Errorf("a server of this build that comes too late exits with %d: %s", code, late.out)
	}
	m.end(0, syscall.SIGKILL)
	seen, end := m.follow("after", "r1", 1)
	if end.kind() != "RUN_FINISHED" {
		m.Errorf("the run that was killed after the step ended with %s after %d records", end.Raw, len(seen))
	}
	m.start(0, next)
}

// print prints the table.
func (m *mixed) print() {
	if m.charges == 0 {
		m.Error("nothing was charged")
	}
	table := []string{
		"| what happens | runs | records | handed over | taken over | calls begun again | records lost | records " +
			"doubled | effects lost or doubled |",
		"|---|---|---|---|---|---|---|---|---|",
	}
	for _, r := range m.rows {
		table = append(table, fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |", r.name, r.runs, r.records,
			r.handed, r.taken, r.again, r.lost, r.doubled, r.effectsLost+r.effectsTwice))
	}
	m.Log("\n" + strings.Join(table, "\n"))
}
