//go:build crashpoints

package loop

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/holdfast-agents/holdfast"
)

// crashes belongs to the process, because a process dies only once. It is not in
// any build that people run.
var crashes = newCrasher(os.Getenv("HOLDFAST_CRASH"), os.Getenv("HOLDFAST_CRASH_LIST"))

// crashPoint is passed before and after each try to commit. The process dies at
// the point that HOLDFAST_CRASH names, like "after answer 2" for the second
// time; without it the points are listed in the file HOLDFAST_CRASH_LIST.
func crashPoint(when string, c *holdfast.Commit) { crashes.pass(when + " " + crashLabel(c)) }

type crasher struct {
	at   string // the point; empty lists them
	list string

	mu   sync.Mutex
	left int // how many times the point is still passed
}

func newCrasher(at, list string) *crasher {
	x := &crasher{list: list}
	if at == "" {
		return x
	}
	var when, label string
	if n, err := fmt.Sscanf(at, "%s %s %d", &when, &label, &x.left); n != 3 || x.left < 1 {
		panic(fmt.Sprintf("HOLDFAST_CRASH is %q (%v), but must be like \"after answer 2\"", at, err))
	}
	x.at = when + " " + label
	return x
}

func (x *crasher) pass(point string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.at == "" && x.list != "":
		x.note(point)
	case x.at == point:
		if x.left--; x.left == 0 {
			die()
		}
	}
}

// note appends a line in one write, so that the file has whole lines.
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

// die is kill -9 by its own hand: no deferred call runs, nothing is flushed.
func die() {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(fmt.Sprintf("die at a crash point: %v", err))
	}
	select {} // the signal may take a moment
}

// crashLabel says what a commit is. One that is several things is named after
// the first of them in this order.
func crashLabel(c *holdfast.Commit) string {
	puts := func(k holdfast.Kind) bool {
		return slices.ContainsFunc(c.Put, func(v holdfast.Value) bool { return v.Kind == k })
	}
	claims := c.Fence != c.Expect.Fence
	switch {
	case puts(holdfast.KindRun):
		return "begin"
	case c.Trim > 0:
		return "archive"
	case puts(holdfast.KindOutcome) && claims:
		return "cut"
	case puts(holdfast.KindOutcome):
		return "finish"
	case claims && c.Process != "":
		return "takeover"
	case puts(holdfast.KindCheckpoint):
		return "checkpoint"
	case puts(holdfast.KindPending):
		return "result"
	case puts(holdfast.KindIntent), len(c.Messages) > 0:
		return "answer"
	}
	return "delta"
}
