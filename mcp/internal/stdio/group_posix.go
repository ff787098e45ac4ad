//go:build unix && !linux

package stdio

import "os/exec"

// inGroup makes the process the first of a group of its own.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = ownGroup() }
