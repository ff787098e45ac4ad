//go:build linux

package filestore

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// limitFileSize bounds the size of the files of a running process, as a disk
// that is full does: Linux has a call for it, and lifts it again.
func limitFileSize(t *testing.T, pid int, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: math.MaxUint64}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE,
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Fatalf("limit the size of files: %v", errno)
	}
}

// TestNoRoom takes a process that commits the room to grow again and again: at once,
// or when a file of the log or a table has become so large. It tries the same commits
// until there is room. Nothing that it was promised is lost, and no commit is there
// twice or in part.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	child := startPatient(t, path)
	for _, size := range []uint64{4 << 10, 3 << 20, 64 << 10, 1 << 20, 0} {
		child.read(100, 0)
		limitFileSize(t, child.cmd.Process.Pid, size)
		child.read(0, 20)
		limitFileSize(t, child.cmd.Process.Pid, math.MaxUint64)
	}
	child.read(100, 0)
	if err := child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for child.next() {
	}
	survived(t, path, child.acknowledged)
}

// TestStartWithoutRoom starts a process that has no room from its first moment. It
// reads what is stored, and commits when there is room.
func TestStartWithoutRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	child := startPatient(t, path)
	child.read(100, 0)
	if err := child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for child.next() {
	}
	again := startPatient(t, path, "sh", "-c", `ulimit -S -f 1 && exec "$0"`)
	again.acknowledged = child.acknowledged
	again.read(0, 20)
	limitFileSize(t, again.cmd.Process.Pid, math.MaxUint64)
	again.read(100, 0)
	if err := again.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for again.next() {
	}
	survived(t, path, again.acknowledged)
}

// patient is a process that commits, and tries again what fails.
type patient struct {
	*testing.T
	cmd          *exec.Cmd
	lines        *bufio.Scanner
	acknowledged map[string]uint64 // the last record, by thread
	refused      int               // how many commits, since it was asked
}

// startPatient starts one, with another command than this program's if there is one.
func startPatient(t *testing.T, path string, command ...string) *patient {
	t.Helper()
	command = append(command, os.Args[0])
	p := &patient{
		T:            t,
		cmd:          exec.CommandContext(t.Context(), command[0], command[1:]...),
		acknowledged: map[string]uint64{},
	}
	p.cmd.Env = append(os.Environ(), crashVariable+"="+path, patientVariable+"=1")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // killed, so it has no exit code worth a look
	})
	p.lines = bufio.NewScanner(out)
	return p
}

// read follows the process until it has had so many commits acknowledged and
// so many refused.
func (p *patient) read(commits, refusals int) {
	p.Helper()
	acknowledged := total(p.acknowledged)
	for total(p.acknowledged) < acknowledged+uint64(commits) || p.refused < refusals {
		if !p.next() {
			p.Fatalf("the process ended: %v", p.lines.Err())
		}
	}
	p.refused = 0
}

// next reads a line of the process, and reports whether there was one.
func (p *patient) next() bool {
	p.Helper()
	if !p.lines.Scan() {
		return false
	}
	thread, rest, _ := strings.Cut(p.lines.Text(), " ")
	if cause, refused := strings.CutPrefix(rest, "refused: "); refused {
		p.refused++
		if !strings.Contains(cause, "file too large; it cannot grow: free space") {
			p.Errorf("the refusal does not say what to do: %s", cause)
		}
		return true
	}
	var n uint64
	if _, err := fmt.Sscan(rest, &n); err != nil {
		p.Fatalf("the process printed %q", p.lines.Text())
	}
	p.acknowledged[thread] = n
	return true
}
