//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
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
	c := &crowded{killer: newKiller(t, newFile(t), "per_iteration", "on", args...)}
	limitFileSize(t, c.p.cmd.Process.Pid, 192<<10)
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
	if res.StatusCode != http.StatusServiceUnavailable || refusal.Code != codes.StoreUnavailable ||
		!strings.Contains(refusal.Hint, "Try again") {
		t.Errorf("a POST on a full disk: %d %s", res.StatusCode, body)
	}
	for _, internal := range []string{".log", "too large", "grow", "pebble", os.TempDir()} {
		if strings.Contains(string(body), internal) {
			t.Errorf("the answer tells %q: %s", internal, body)
		}
	}
}

// checkReadable: what is stored can be read, the server says that no run could be
// started, and the log tells the operator which store it is about and what to do.
func (c *crowded) checkReadable() {
	c.Helper()
	if code := getJSON(c.T, c.p.url+"/readyz", new(any)); code != http.StatusServiceUnavailable {
		c.Errorf("a server whose disk is full says at /readyz: %d", code)
	}
	var list struct{ Threads []map[string]any }
	if code := getJSON(c.T, c.p.url+"/threads", &list); code != http.StatusOK || len(list.Threads) != len(c.watchers) {
		c.Errorf("GET /threads: %d, %d threads, want %d", code, len(list.Threads), len(c.watchers))
	}
	for _, w := range c.watchers {
		var history struct{ Messages []map[string]any }
		if code := getJSON(c.T, c.p.url+"/threads/"+w.thread+"/messages", &history); code != http.StatusOK ||
			len(history.Messages) == 0 {
			c.Errorf("%s: GET messages: %d, %d messages", w.thread, code, len(history.Messages))
		}
	}
	for _, want := range []string{strings.TrimPrefix(c.store, "file:"), "free space on its disk"} {
		if !strings.Contains(c.p.out.String(), want) {
			c.Errorf("the log does not say %q: %s", want, c.p.out)
		}
	}
}

// checkAll: the server says that a run could be started again, every run goes on to its
// end, and every watcher has every record once.
func (c *crowded) checkAll() {
	c.Helper()
	c.p.ready()
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
	shell := append([]string{"-c", `ulimit -S -f 1 && exec "$0" "$@"`, binary, "--addr", k.addr, "--store", k.store},
		k.args...)
	p := run(t, exec.Command("sh", shell...))
	p.url = "http://" + k.addr
	p.awaitOutput(says("free space on its disk"), nil)
	p.awaitOutput(says("listening"), nil)
	return p
}

// TestCannotOpenStore: a server that cannot use its folder does not start. It says
// which folder, and what to do.
func TestCannotOpenStore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	letIn(t, folder)
	name := func(parts ...string) string { return filepath.Join(append([]string{folder}, parts...)...) }
	for _, dir := range []string{"sealed", "others"} {
		if err := os.Mkdir(name(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range [][]string{{"file"}, {"others", "notes.txt"}} {
		if err := os.WriteFile(name(file...), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, store := range []string{"readonly", "damaged"} {
		if err := openStore(t, "file:"+name(store)).Close(); err != nil {
			t.Fatal(err)
		}
	}
	damage(t, name("damaged"))
	share(t, folder, 0o666)
	share(t, name("readonly"), 0o444)
	share(t, name("sealed"), 0o444)
	const rights = "the server's user must be able to write the folder and what is in it"
	for path, want := range map[string]string{
		name("readonly"):            rights,
		name("sealed"):              rights,
		name("sealed", "data"):      rights,
		name("sealed", "a", "data"): rights,
		name("file"):                "a part of this path is a file",
		name("file", "data"):        "a part of this path is a file",
		name("damaged"):             "it was left as it is: put a backup in its place",
		name("others"):              "name a new or an empty folder",
	} {
		before := contents(t, folder)
		p := run(t, unprivileged(t, exec.Command(binary, "--addr", redistest.FreeAddr(t), "--store", "file:"+path)))
		select {
		case <-p.done:
		case <-time.After(patience):
			t.Fatalf("%s: the server did not give up: %s", path, p.out)
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%s: exit code %d, want 1", path, code)
		}
		if text := p.out.String(); !strings.Contains(text, "open the store "+path+": ") ||
			!strings.Contains(text, want) {
			t.Errorf("the server does not name %s or say %q: %s", path, want, text)
		}
		if !maps.Equal(before, contents(t, folder)) {
			t.Errorf("%s was changed", path)
		}
	}
}

// contents are the files in a folder, but for the locks.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		text, err := os.ReadFile(name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// share gives everybody rights to all files in a folder, and the same with entry to the
// folders.
func share(t *testing.T, folder string, mode os.FileMode) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(name, mode|0o111)
		}
		return errors.Join(err, os.Chmod(name, mode))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// damage empties the list of a store's tables.
func damage(t *testing.T, dir string) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("%s has no list of its tables, %v", dir, err)
	}
	for _, name := range lists {
		if err := os.Truncate(name, 0); err != nil {
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
