//go:build crashpoints

package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Crash points let a test kill the server at each commit of a run and look whether
// anything was lost. They are named after what a commit holds, so a new thing that is
// committed gets its point here. Builds without the tag crashpoints have none of this.

// crashes is package state because a process dies only once. It is in no build that
// people run.
var crashes = newCrasher(os.Getenv("HOLDFAST_CRASH"), os.Getenv("HOLDFAST_CRASH_LIST"))

// crashPoint is called before and after each try to commit. The process dies at the point
// that HOLDFAST_CRASH names, like "after answer 2" for the commit with the second answer.
// Without it the points are listed in the file HOLDFAST_CRASH_LIST.
func crashPoint(when string, c *store.Commit) { crashes.pass(when, c) }

// crasher counts the points that are passed, and acts at them.
type crasher struct {
	at   string // the point; empty lists them
	list string

	mu     sync.Mutex
	tried  map[string]bool // commits, by their ids, so that a retry counts once
	passed map[string]int  // how many times each point was passed
}

// newCrasher returns a crasher that dies at the point at, or lists the points in the file
// list. It panics if at is not the name of a point.
func newCrasher(at, list string) *crasher {
	x := &crasher{at: at, list: list, tried: map[string]bool{}, passed: map[string]int{}}
	if at == "" {
		return x
	}
	var when, label string
	var nth int
	if n, err := fmt.Sscanf(at, "%s %s %d", &when, &label, &nth); n != 3 || nth < 1 {
		panic(fmt.Sprintf("HOLDFAST_CRASH is %q (%v), but must be like \"after answer 2\"", at, err))
	}
	return x
}

// pass passes the points of a commit.
func (x *crasher) pass(when string, c *store.Commit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if (x.at == "" && x.list == "") || x.tried[when+c.ID] {
		return
	}
	x.tried[when+c.ID] = true
	for _, label := range crashLabels(c) {
		x.passed[when+label]++
		point := fmt.Sprintf("%s %s %d", when, label, x.passed[when+label])
		switch x.at {
		case "":
			x.note(point)
		case point:
			die()
		}
	}
}

// note appends a line in one write, so that the file has only complete lines.
func (x *crasher) note(point string) {
	f, err := os.OpenFile(x.list, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(point + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(fmt.Sprintf("list the crash points: %v", err))
	}
}

// die kills its own process with SIGKILL: no deferred call runs, nothing is flushed.
func die() {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(fmt.Sprintf("die at a crash point: %v", err))
	}
	select {} // the signal may take a moment
}

// crashLabels names what a commit holds. Which things of a run share a commit depends on
// timing, so such a commit is named after each thing in it: a run passes the same points
// whatever the machine's speed.
func crashLabels(c *store.Commit) []string {
	claims := c.Fence != c.Expect.Fence
	switch {
	case crashPuts(c, store.KindRun) > 0 && crashPuts(c, store.KindCheckpoint) > 0:
		return []string{"begin"}
	case c.Trim > 0:
		return []string{"archive"}
	case claims && crashPuts(c, store.KindOutcome) > 0:
		return []string{"cut"}
	case claims && c.Process != "" && len(c.Records) == 1: // a takeover has more
		return []string{"wait"}
	case claims && c.Process != "":
		return []string{"takeover"}
	}
	var labels []string
	add := func(label string, times int) {
		for range times {
			labels = append(labels, label)
		}
	}
	add("delta", crashStreams(c))
	add("answer", crashMessages(c, holdfast.RoleAssistant))
	add("result", crashMessages(c, holdfast.RoleTool))
	add("activity", crashMessages(c, holdfast.RoleActivity))
	add("checkpoint", crashPuts(c, store.KindCheckpoint))
	add("finish", crashPuts(c, store.KindOutcome))
	return labels
}

// crashPuts counts the values of a kind.
func crashPuts(c *store.Commit, kind store.Kind) (n int) {
	for _, v := range c.Put {
		if v.Kind == kind {
			n++
		}
	}
	return n
}

// crashStreams counts the messages and calls that begin to stream in. Their deltas are not
// counted, because how many records they become depends on timing.
func crashStreams(c *store.Commit) (n int) {
	for _, r := range c.Records {
		var ev struct{ Type string }
		crashDecode(r, &ev)
		if strings.HasSuffix(ev.Type, "_START") {
			n++
		}
	}
	return n
}

// crashMessages counts the messages with a role.
func crashMessages(c *store.Commit, role holdfast.Role) (n int) {
	for _, m := range c.Messages {
		var v struct{ Role holdfast.Role }
		crashDecode(m.Data, &v)
		if v.Role == role {
			n++
		}
	}
	return n
}

// crashDecode reads what the loop itself wrote.
func crashDecode(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic(fmt.Sprintf("name a crash point: %v", err))
	}
}
