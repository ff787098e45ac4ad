//go:build !unix

package stdio

import (
	"os"
	"os/exec"
)

// inGroup does nothing: there are no process groups here.
func inGroup(*exec.Cmd) {}

// endGroup and killGroup end the process alone.
func endGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// A guard is none: there are no process groups here.
type guard struct{}

func guardGroup(int) (*guard, error) { return nil, nil }

func (*guard) dismiss() {}
