package simulate

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A tie is two goroutines that go on at the same moment, where the story depends on which of them is
// faster. Go's scheduler mostly decides a tie in the same way again, so two replays seldom show it.
// With a scheduler that throws dice they do.

var replays = flag.Bool("replays", false, "compare stories under a scheduler that throws dice: make replays")

// dice has a goroutine that is ready wait for others in half of all cases, and one that has made another
// ready lose its turn in a third of them.
func dice(t *testing.T) *mutant {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", "proc.go")
	return &mutant{"a scheduler that throws dice", []change{
		{file, "const randomizeScheduler = raceenabled", "const randomizeScheduler = true"},
		{file, "		return next.ptr(), true\n	}\n\n	for {\n",
			"		if pp.runqhead == pp.runqtail || randn(2) == 0 {\n" +
				"			return next.ptr(), true\n		}\n		runqput(pp, " +
				"next.ptr(), false)\n	}\n\n	for {\n"},
		{file, "		gp := pp.runq[h%uint32(len(pp.runq))].ptr()\n		if atomic.CasRel(&pp.runqhead, h, h+1) {" +
			" // cas-release, commits consume\n			return gp, false\n",
			"		gp := pp.runq[h%uint32(len(pp.runq))].ptr()\n		if atomic.CasRel(&pp.runqhead, h, h+1) {\n" +
				"			if n := t - h; n > 1 && n < uint32(len(pp.runq))-1 && randn(2) == 0 {\n" +
				"				runqput(pp, gp, false)\n				continue\n			}" +
				"\n			return gp, false\n"},
		{file, "	runqput(mp.p.ptr(), gp, next)\n	wakep()\n	releasem(mp)\n",
			"	runqput(mp.p.ptr(), gp, next)\n	wakep()\n	if g := mp.curg; g != nil && randn(3) == 0 {\n" +
				"		g.preempt, g.stackguard0 = true, stackPreempt\n	}\n	releasem(mp)\n"},
	}}
}

// TestReplays: seeds have the same stories whichever of two goroutines is faster.
func TestReplays(t *testing.T) {
	if !*replays {
		t.Skip("make replays")
	}
	plain, diced := (&mutant{name: "nothing"}).build(t), dice(t).build(t)
	first, last, _ := bounds(t)
	same, all := 0, 0
	for from := first; from <= last; from += 100 {
		to := min(from+99, last)
		one, other := told(t, plain, from, to, "2", *through), told(t, diced, from, to, "2", *through)
		for n := from; n <= to; n++ {
			all++
			if where := differ(t, storyFile(one, n), storyFile(other, n)); where != "" {
				t.Errorf("the seed %d has another story: %s", n, where)
				continue
			}
			same++
		}
	}
	fmt.Printf("%d of %d seeds have the same story under a scheduler that throws dice\n", same, all)
}
