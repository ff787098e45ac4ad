//go:build unix

package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// alive reports whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// pidIn waits for the process whose number is in a file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	wait.For(t, func() error {
		data, err := os.ReadFile(file)
		if err == nil && !bytes.HasSuffix(data, []byte("\n")) {
			err = errors.New("the file has no whole line")
		}
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err
	})
	return pid
}

// TestStubborn: a process that does not mind the end of its input nor SIGTERM is ended by
// force, with its children.
func TestStubborn(t *testing.T) {
	t.Parallel()
	c, dir := started(t, `trap '' TERM; sleep 3600 & echo $! >child; wait; wait; while :; do sleep 3600; done`, nil)
	child, self := pidIn(t, filepath.Join(dir, "child")), c.p.cmd.Process.Pid
	c.Close()
	c.Wait()
	wait.For(t, func() error { // the process that inherits the child has to reap it
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat") // without it, nothing is reaped
		if !alive(self) && (!alive(child) || bytes.Contains(stat, []byte(") Z "))) {
			return nil
		}
		return fmt.Errorf("the process is there: %v, its child: %v", alive(self), alive(child))
	})
}

// TestRunaway: a process whose child has left the group and keeps its output open has still
// ended.
func TestRunaway(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	c, dir := started(t, `setsid sh -c 'echo $$ >child; exec sleep 3600' & while [ ! -s child ]; do sleep 0.01; `+
		`done; echo bye >&2; exit 7`, nil)
	child := pidIn(t, filepath.Join(dir, "child"))
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	if _, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("the error is %v", err)
	}
}
