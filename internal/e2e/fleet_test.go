package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// Servers on one Redis that do not have the same agents, or of which not all recover.

// TestReplicaWithoutTheAgent: a run whose server dies or shuts down goes on at the one other server
// that can go on with it, although a third one, which cannot, finds it as soon.
func TestReplicaWithoutTheAgent(t *testing.T) {
	t.Parallel()
	agents := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(agents, []byte("agents:\n  - {name: other, model: demo}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"another agent": {"--config=" + agents},
		"recover=off": {"--recover=off"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fleet{T: t, store: redistest.Start(t).URL(), args: []string{"--lease=1s", "--demo-delay=10ms"}}
			for i := range 3 {
				f.addrs = append(f.addrs, redistest.FreeAddr(t))
				f.journals = append(f.journals, filepath.Join(t.TempDir(), fmt.Sprint("journal", i)))
				f.servers = append(f.servers, nil)
				if i < 2 {
					f.start(i)
				}
			}
			f.servers[2] = start(t, f.addrs[2], f.store, append([]string{"--lease=1s"}, args...)...)
			for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				owner, thread := i%2, fmt.Sprint("t", i)
				seen := f.watched(t.Context(), f.servers[2], f.underWay(owner, thread), "")
				f.servers[owner].signal(signal)
				<-f.servers[owner].done
				f.finished(thread, seen)
				f.start(owner)
			}
		})
	}
}

// underWay begins a run at a server, and returns its thread once it has said something.
func (f *fleet) underWay(owner int, thread string) string {
	f.Helper()
	f.begin(thread, owner, "plan 4 steps")
	for s := range f.watched(f.Context(), f.servers[owner], thread, "") {
		if s.Number > 10 {
			break
		}
	}
	return thread
}

// finished reads a run to its end, which must be a good one.
func (f *fleet) finished(thread string, seen <-chan sight) {
	f.Helper()
	var last sight
	for late := time.After(patience); ; {
		select {
		case s, open := <-seen:
			if open {
				last = s
				continue
			}
		case <-late:
			f.Errorf("%s: no end after %s", thread, last.Raw)
		}
		break
	}
	if last.kind() != "RUN_FINISHED" {
		f.Errorf("%s: the run ended with %s, at its third server:\n%s", thread, last.Raw,
			lastLines(f.servers[2].out.String(), 5))
	}
	if out := f.servers[2].out.String(); strings.Contains(out, codes.AgentNotFound) ||
		strings.Contains(out, codes.CutOff) {
		f.Errorf("%s: the third server ends runs:\n%s", thread, lastLines(out, 5))
	}
}
