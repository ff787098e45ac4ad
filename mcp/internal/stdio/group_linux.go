package stdio

import (
	"os/exec"
	"syscall"
)

// inGroup makes the process the first of a group of its own, and has the kernel end it with
// this process. The guard ends the rest of the group.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = ownGroup()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
