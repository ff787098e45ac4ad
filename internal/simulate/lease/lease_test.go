// Package lease_test checks the protocol of the lease as a model: who may start something, whose
// silence counts, who is there, and that an accepted run ends. The models are in Promela, and spin
// tries every order of their steps. Each name in them is that of what it stands for.
package lease_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var whole = flag.Bool("whole", false, "try the larger bounds, too: make lease")

// model is a model, and what is left out of it or changed in it.
type model struct {
	name string // of its file
	with []string
	// ends means that the question is whether the run ends, and not whether an assertion fails.
	ends bool
}

// is returns a model in which no assertion may fail.
func is(name string, with ...string) model { return model{name: name, with: with} }

// ends returns the model of the run that must end.
func ends(with ...string) model { return model{name: "run", with: with, ends: true} }

// sound are the models of the protocol as it is.
var sound = []model{
	is("owner"),
	is("owner", "PRESENCE"),
	is("silence"),
	is("presence"),
	is("run", "SAFE", "RELOADS=0", "LOSSES=0", "SILENCES=0"),
	ends(),
	ends("POISON", "RELOADS=0", "LOSSES=0"),
}

// large are those that take minutes.
var large = []model{
	is("owner", "FINE"),
	is("owner", "FINE", "PRESENCE"),
	is("run", "SAFE"),
	is("run", "SAFE", "KILLS=2", "RELOADS=0"),
	ends("KILLS=2", "STOPS=2"),
	ends("POISON", "SILENCES=2"),
}

// guards are what the protocol cannot do without: with each of these, something is found.
var guards = []struct {
	left string // what was left out
	in   model
}{
	{"the intent comes after the call", is("owner", "NO_INTENT")},
	{"nothing is asked before a tool", is("owner", "NOT_CONFIRMED")},
	{"the fence is not compared by a commit", is("owner", "FENCE_NOT_COMPARED")},
	{"the fence that is read before a tool is not compared", is("owner", "PRESENCE", "HEAD_NOT_COMPARED")},
	{"a claim does not raise the epoch", is("owner", "PRESENCE", "CLAIM_WITHOUT_EPOCH")},
	{"to have read the head is proof, after a lapse, too", is("owner", "HEAD_IS_PROOF")},
	{"the own lease does not matter before a tool", is("owner", "LEASE_NOT_ASKED")},
	{"a break in contact goes unnoticed before a tool", is("owner", "BREAK_UNNOTICED")},
	{"a renewal counts from its reply", is("owner", "RENEWAL_COUNTS_FROM_REPLY")},
	{"a commit counts from its reply", is("owner", "COMMIT_COUNTS_FROM_REPLY")},
	{"a claim does not read the owner's lease", is("owner", "LEASE_NOT_READ")},
	{"a claim does not compare the head", is("owner", "CLAIM_IGNORES_HEAD")},
	{"a takeover starts a call in doubt", is("owner", "DOUBT_STARTS_AGAIN")},
	{"a break in contact goes unnoticed by a judge", is("silence", "GAP_UNNOTICED")},
	{"a judge does not ask when it last heard the store itself", is("silence", "LATE_JUDGE_HEARS")},
	{"silence counts for a process that was deaf", is("silence", "NEW_CONTACT_HEARS")},
	{"one look is enough", is("presence", "ONE_LOOK")},
	{"the second look comes at once", is("presence", "LOOKS_TOO_CLOSE")},
	{"the judge's own connections do not matter", is("presence", "OWN_NOT_COUNTED")},
	{"what was counted before a break counts", is("presence", "CONTACT_IGNORED")},
	{"a process that was never counted is judged", is("presence", "STRANGERS_JUDGED")},
	{"a hand-over without a boundary", is("run", "SAFE", "NO_BOUNDARY")},
	{"calls start after the last commit was composed", is("run", "SAFE", "STARTS_AFTER_LEAVING")},
	{"the intent comes after the call, and the process dies", is("run", "SAFE", "INTENT_AFTER_START")},
	{"a takeover starts a call in doubt, after a death", is("run", "SAFE", "DOUBT_STARTS_AGAIN")},
	{"the pin of a run is ignored", is("run", "SAFE", "PIN_IGNORED")},
	{"a pinned run waits for ever", ends("PIN_HAS_NO_END")},
	{"nothing sweeps", ends("NO_SWEEP")},
	{"a run that was given up is not handed over", ends("GIVEN_UP_NOT_HANDED_OVER")},
	{"takeovers are not counted", ends("POISON", "TAKEOVERS_NOT_COUNTED")},
}

// verdict is what spin says about a model.
type verdict struct {
	states string
	took   time.Duration
	story  string // how it breaks; empty if it does not
}

// TestLease: the models are sound.
func TestLease(t *testing.T) {
	tools(t)
	models := sound
	if *whole {
		models = append(models, large...)
	}
	for _, m := range models {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			v := m.check(t, "-O1")
			t.Logf("| `%s` | holds | %s | %s |", m, v.states, v.took.Round(time.Millisecond))
			if v.story != "" {
				t.Errorf("%s breaks:\n%s", m, v.story)
			}
		})
	}
}

// TestGuards: whatever is left out of the protocol is found.
func TestGuards(t *testing.T) {
	tools(t)
	for _, g := range guards {
		t.Run(g.left, func(t *testing.T) {
			t.Parallel()
			v := g.in.check(t, "-O0")
			t.Logf("| %s | `%s` | %s | %s |\n%s", g.left, g.in, v.states, v.took.Round(time.Millisecond), v.story)
			if v.story == "" {
				t.Errorf("the model holds although %s", g.left)
			}
		})
	}
}

// TestDeathsAreFound: the model of presence is not sound because it never takes anybody for dead.
func TestDeathsAreFound(t *testing.T) {
	tools(t)
	if v := is("presence", "DEATHS_ARE_FOUND").check(t, "-O0"); v.story == "" {
		t.Error("nobody is ever taken for dead")
	}
}

// tools skips the test if what it needs is missing, or fails it if HOLDFAST_REQUIRE_ALL is set.
func tools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
			t.Fatalf("%s is missing: run scripts/install-test-deps.sh", tool)
		}
		t.Skipf("%s is missing: run scripts/install-test-deps.sh", tool)
	}
}

// String returns the model's name, and what is special.
func (m model) String() string {
	what := ""
	if m.ends {
		what = " ends"
	}
	return strings.Join(append([]string{m.name + what}, m.with...), " ")
}

var (
	errorsIn = regexp.MustCompile(`errors: (\d+)`)
	statesIn = regexp.MustCompile(`(\d+) states, stored`)
)

// check has spin try every order of the model's steps.
func (m model) check(t *testing.T, optimize string) verdict {
	t.Helper()
	dir, file := t.TempDir(), m.name+".pml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	var defs []string
	for _, d := range m.with {
		defs = append(defs, "-D"+d)
	}
	begun := time.Now()
	run("spin", append(defs, "-a", file)...)
	// The shortest story comes first if nothing but assertions matters.
	compile, search := []string{"-DSAFETY", "-DBFS"}, []string{"-w22"}
	if m.ends {
		compile, search = []string{"-DNFAIR=3"}, []string{"-a", "-f", "-m1000000", "-w22"}
	}
	run("gcc", append(compile, "-w", optimize, "-o", "pan", "pan.c")...)
	out := run(filepath.Join(dir, "pan"), search...)
	failed, states := errorsIn.FindStringSubmatch(out), statesIn.FindStringSubmatch(out)
	if failed == nil || states == nil || strings.Contains(out, "search not completed") && failed[1] == "0" ||
		strings.Contains(out, "max search depth too small") {
		t.Fatalf("spin did not try all:\n%s", out)
	}
	v := verdict{states: states[1], took: time.Since(begun)}
	if failed[1] != "0" {
		v.story = tell(run("spin", append(defs, "-t", file)...))
	}
	return v
}

// tell returns what the steps of a trail have said, in order.
func tell(trail string) string {
	var story []string
	said, times := "", 0
	end := func() {
		switch {
		case times > 1:
			story = append(story, fmt.Sprintf("    %s, %d times", said, times))
		case times == 1:
			story = append(story, "    "+said)
		}
		times = 0
	}
	for line := range strings.Lines(trail) {
		line = strings.TrimSpace(line)
		line, failed := strings.CutPrefix(line, "spin: text of failed assertion: ")
		switch {
		case failed:
			line = "so this is false: " + line
		case strings.HasPrefix(line, "spin: trail ends"):
			end()
			return strings.Join(story, "\n")
		case strings.Contains(line, "START OF CYCLE"):
			line = "from here on it goes round and round, and nothing else happens"
		case line == "", strings.HasPrefix(line, "spin:"), strings.HasPrefix(line, "ltl "),
			strings.HasPrefix(line, "Never claim"):
			continue
		}
		if line != said {
			end()
		}
		said = line
		times++
	}
	end()
	return strings.Join(story, "\n")
}
