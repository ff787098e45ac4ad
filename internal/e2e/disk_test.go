//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/redistest"
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

// crowded is a server whose disk is full, with the conversations that it had
// accepted before.
type crowded struct {
	*killer
	watchers []*watcher
	ended    []chan struct{} // closed when the watcher's stream has ended
}

// fillDisk starts conversations until the server cannot accept another one.
func fillDisk(t *testing.T, args ...string) *crowded {
	t.Helper()
	c := &crowded{killer: newKiller(t, newBolt(t), "per_iteration", "on", args...)}
	limitFileSize(t, c.p.cmd.Process.Pid, 512<<10)
	for i := range 100 {
		w := &watcher{killer: c.killer, thread: fmt.Sprintf("t%d", i), run: "r1"}
		res, err := post(t.Context(), c.p.url, input(w.thread, w.run, c.plan()))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			checkRefused(t, res)
			return c
		}
		c.watch(w, res.Body)
		c.awaitTrouble(c.ended[i])
	}
	t.Fatal("the disk did not fill up")
	return nil
}

// watch reads a stream to its end, or until it is cut.
func (c *crowded) watch(w *watcher, body io.ReadCloser) {
	ended := make(chan struct{})
	c.watchers, c.ended = append(c.watchers, w), append(c.ended, ended)
	go func() {
		defer close(ended)
		defer body.Close()
		_ = readStream(body, func(r record) bool { w.take(r); return false }) // what is missing is asked for later
	}()
}

// awaitTrouble waits until the conversation has ended, or the server says that
// it cannot store. It says so in its log only.
func (c *crowded) awaitTrouble(ended <-chan struct{}) {
	c.Helper()
	c.p.awaitOutput(says("failed to checkpoint"), ended)
}

func says(what string) (found func(text string) bool) {
	return func(text string) bool { return strings.Contains(text, what) }
}

// checkRefused: the answer says what to do, and nothing of the server's inside.
func checkRefused(t *testing.T, res *http.Response) {
	t.Helper()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	refusal := answer.Error
	if res.StatusCode != http.StatusServiceUnavailable || refusal.Code != codes.StoreUnavailable || !strings.Contains(refusal.Hint, "Try again") {
		t.Errorf("a POST on a full disk: %d %s", res.StatusCode, body)
	}
	for _, internal := range []string{".db", "too large", "resize", "bolt", os.TempDir()} {
		if strings.Contains(string(body), internal) {
			t.Errorf("the answer tells %q: %s", internal, body)
		}
	}
}

// checkReadable: what is stored can be read, and the log tells the operator
// which file it is about and what to do.
func (c *crowded) checkReadable() {
	c.Helper()
	var list struct{ Threads []map[string]any }
	if code := getJSON(c.T, c.p.url+"/threads", &list); code != http.StatusOK || len(list.Threads) != len(c.watchers) {
		c.Errorf("GET /threads: %d, %d threads, want %d", code, len(list.Threads), len(c.watchers))
	}
	for _, w := range c.watchers {
		var history struct{ Messages []map[string]any }
		if code := getJSON(c.T, c.p.url+"/threads/"+w.thread+"/messages", &history); code != http.StatusOK || len(history.Messages) == 0 {
			c.Errorf("%s: GET messages: %d, %d messages", w.thread, code, len(history.Messages))
		}
	}
	for _, want := range []string{strings.TrimPrefix(c.store, "bolt:"), "free space on its disk"} {
		if !strings.Contains(c.p.out.String(), want) {
			c.Errorf("the log does not say %q: %s", want, c.p.out)
		}
	}
}

// checkAll: every run goes on to its end, and every watcher has every record
// once.
func (c *crowded) checkAll() {
	c.Helper()
	for _, w := range c.watchers {
		w.finish()
		w.checkLog()
		c.checkHistory(w.thread)
	}
}

// TestDiskFullForAMoment: there is room again before a run is given up. It goes
// on, and its stream is not even cut.
func TestDiskFullForAMoment(t *testing.T) {
	t.Parallel()
	c := fillDisk(t)
	c.checkReadable()
	limitFileSize(t, c.p.cmd.Process.Pid, math.MaxUint64)
	for i, w := range c.watchers {
		<-c.ended[i]
		if end := w.seen[len(w.seen)-1]; end.kind() != "RUN_FINISHED" {
			t.Errorf("%s: the stream ended with %s", w.thread, end.Raw)
		}
	}
	c.checkAll()
	c.checkOnce(c.journalFrom(0))
}

// TestDiskFullAndKilled kills the server while its disk is full. It starts
// again on the full disk and can be read; nothing is lost that a watcher has seen,
// and when there is room the runs go on.
func TestDiskFullAndKilled(t *testing.T) {
	t.Parallel()
	c := fillDisk(t)
	c.p.kill()
	finished := map[string]done{}
	for i, w := range c.watchers {
		<-c.ended[i]
		finished[w.thread] = c.finished(w.thread)
	}
	mark := c.journalSize()
	c.p = startFull(t, c.killer)
	c.checkReadable()
	limitFileSize(t, c.p.cmd.Process.Pid, math.MaxUint64)
	c.checkAll()
	for thread, d := range finished {
		c.checkRepeats(thread, d, c.journalFrom(mark))
	}
}

// TestDiskFullForLong: runs are given up. When there is room the server takes
// them up again by itself, and the streams go on.
func TestDiskFullForLong(t *testing.T) {
	t.Parallel()
	c := fillDisk(t, "--store-timeout=500ms")
	finished := map[string]done{}
	for i, w := range c.watchers {
		c.awaitGivenUp(w.thread, c.ended[i])
		finished[w.thread] = c.stored(w.thread)
	}
	c.checkReadable()
	mark := c.journalSize()
	limitFileSize(t, c.p.cmd.Process.Pid, math.MaxUint64)
	for _, ended := range c.ended {
		<-ended
	}
	c.checkAll()
	for thread, d := range finished {
		c.checkRepeats(thread, d, c.journalFrom(mark))
	}
}

// awaitGivenUp waits until the log says that the thread's run has been given up,
// unless it has ended.
func (c *crowded) awaitGivenUp(thread string, ended <-chan struct{}) {
	c.Helper()
	c.p.awaitOutput(says(`msg="run left to be recovered" thread=`+thread+" "), ended)
}

// stored is what the server says is finished.
func (c *crowded) stored(thread string) done {
	c.Helper()
	var history struct {
		Messages []struct{ Role, ToolCallID string }
	}
	if code := getJSON(c.T, c.p.url+"/threads/"+thread+"/messages", &history); code != http.StatusOK {
		c.Fatalf("%s: messages: %d", thread, code)
	}
	d := done{tools: map[string]bool{}}
	for _, m := range history.Messages {
		switch m.Role {
		case "tool":
			d.tools[m.ToolCallID] = true
		case "assistant":
			d.models++
		}
	}
	return d
}

// startFull starts a server with no room from its first moment, and waits until
// it has found out.
func startFull(t *testing.T, k *killer) *process {
	t.Helper()
	shell := append([]string{"-c", `ulimit -S -f 1 && exec "$0" "$@"`, binary, "--addr", k.addr, "--store", k.store}, k.args...)
	p := run(t, exec.Command("sh", shell...))
	p.url = "http://" + k.addr
	p.awaitOutput(says("free space on its disk"), nil)
	return p
}

// TestCannotOpenStore: a server that cannot use its file does not start. It says
// which file, and what to do.
func TestCannotOpenStore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	letIn(t, folder)
	name := func(parts ...string) string { return filepath.Join(append([]string{folder}, parts...)...) }
	if err := os.Mkdir(name("sealed"), 0o555); err != nil {
		t.Fatal(err)
	}
	makeStore(t, name("readonly.db"), 0o444)
	makeStore(t, name("damaged.db"), 0o666)
	damage(t, name("damaged.db"))
	if err := os.WriteFile(name("file"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	const rights = "the server's user must be able to write the file and its folder"
	for path, want := range map[string]string{
		name("readonly.db"):           rights,
		name("sealed", "holdfast.db"): rights,
		name("sealed", "a", "b.db"):   rights,
		name("sealed"):                "name a file in this folder",
		name("file", "holdfast.db"):   "a part of this path is a file",
		name("damaged.db"):            "it is not a store, or it is damaged; it was left as it is",
	} {
		before, _ := os.ReadFile(path) // some are no files
		p := run(t, unprivileged(t, exec.Command(binary, "--addr", redistest.FreeAddr(t), "--store", "bolt:"+path)))
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the server did not give up: %s", path, p.out)
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%s: exit code %d, want 1", path, code)
		}
		if text := p.out.String(); !strings.Contains(text, "open the store "+path+": ") || !strings.Contains(text, want) {
			t.Errorf("the server does not name %s or say %q: %s", path, want, text)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", path)
		}
	}
}

// makeStore makes an empty store with this mode.
func makeStore(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := openStore(t, "bolt:"+path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// damage destroys the beginnings of a store's first two pages.
func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := range 2 {
		if _, err := f.WriteAt(make([]byte, 64), int64(page*os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
	}
}

// nobody is a user without rights, by custom.
const nobody = 65534

// unprivileged makes the command run without the rights of root, for whom no file
// is read-only.
func unprivileged(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Dir = "/" // which everybody may enter
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

// letIn opens the test's folder, and that of the program, to other users.
func letIn(t *testing.T, folder string) {
	t.Helper()
	for _, f := range []string{folder, filepath.Dir(folder), filepath.Dir(binary)} {
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
