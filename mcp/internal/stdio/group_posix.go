//go:build unix && !linux

package stdio

import (
	"os/exec"
	"syscall"
)

// inGroup makes the process the first of a group of its own.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
