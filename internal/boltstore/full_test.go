//go:build linux

package boltstore

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
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Fatalf("limit the size of files: %v", errno)
	}
}

// TestNoRoom takes a process that commits the room to grow again and again. It
// tries the same commits until there is room. Nothing that it was promised is
// lost, and no commit is there twice or in part.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	child := startPatient(t, path)
	for round := range 6 {
		child.read(100, 0)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		// The file may not grow; or, in half of the rounds, its last third cannot be
		// written, because space was promised that is not there.
		size := uint64(info.Size())
		if round%2 == 1 {
			size -= size / 3
		}
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

// patient is a process that commits, and tries again what fails.
type patient struct {
	*testing.T
	cmd          *exec.Cmd
	lines        *bufio.Scanner
	acknowledged map[string]uint64 // the last record, by thread
	refused      int               // how many commits, since it was asked
}

func startPatient(t *testing.T, path string) *patient {
	t.Helper()
	p := &patient{T: t, cmd: exec.CommandContext(t.Context(), os.Args[0]), acknowledged: map[string]uint64{}}
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
		if !strings.Contains(cause, "file too large; the file cannot grow: free space") {
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
