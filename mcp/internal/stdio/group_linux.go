package stdio

import (
	"os/exec"
	"syscall"
)

// inGroup makes the process the first of a group of its own, which ends with this process.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
