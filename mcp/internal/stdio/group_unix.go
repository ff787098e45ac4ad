//go:build unix

package stdio

import "syscall"

// endGroup tells a process and its children to end, killGroup makes them.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
