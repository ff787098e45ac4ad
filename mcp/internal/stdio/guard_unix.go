//go:build unix

package stdio

import (
	"os"
	"os/exec"
	"strconv"
)

// A guard is a shell that ends the group of a server when this process is gone, however it
// ended. It waits for the end of a pipe that only this process can write to, which the
// kernel closes with it.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// guardScript reads a line if the guard is not needed any more. At the end of the pipe it
// ends the group that its argument names.
const guardScript = `read -r _ || kill -s KILL -- "-$1"`

// guardGroup starts the guard of a process group. The guard is in a group of its own.
func guardGroup(pid int) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g := &guard{
		cmd:  exec.Command("/bin/sh", "-c", guardScript, "holdfast-mcp-guard", strconv.Itoa(pid)),
		pipe: w,
	}
	g.cmd.Stdin, g.cmd.Dir, g.cmd.Env = r, "/", []string{}
	g.cmd.SysProcAttr = ownGroup()
	if err := g.cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return g, nil
}

// dismiss ends the guard; the group has ended, and its number may soon be another's. A nil
// guard is none.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_, _ = g.pipe.WriteString("\n") // an error is that the guard has ended
	g.pipe.Close()
	_ = g.cmd.Wait()
}
