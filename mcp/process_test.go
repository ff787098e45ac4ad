package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// runs reports whether a process is there and is not only waiting to be reaped.
func runs(pid string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !has(string(data), ") Z ")
}

// needProc skips a test where there is no /proc to look into.
func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
}

// TestFrozen: a server that reads no more fails its calls at their deadlines, is ended with
// force when it keeps a call from being written, and is started again. Meanwhile the tools of
// others go on.
func TestFrozen(t *testing.T) {
	t.Parallel()
	o := process(t, "plain")
	o.Timeout = time.Second
	s, other := open(t, o), open(t, process(t, "plain"))
	if got := fate(do(t, s, "srv_freeze", `{}`)); got != unknown {
		t.Errorf("the call that froze it is %s", got)
	}
	large := `{"x":"` + strings.Repeat("x", 200<<10) + `"}` // more than a pipe holds
	wait.Until(t, "it is started again", func() bool {
		results := make(chan string)
		for range 3 {
			go func() { results <- fate(do(t, s, "srv_set", large)) }()
		}
		if got := fate(do(t, other, "srv_echo", `{}`)); got != fine {
			t.Errorf("the other server's call is %s", got)
		}
		for range 3 {
			if got := <-results; got == failed {
				t.Errorf("a call is %s", got)
			}
		}
		return len(noted(o, "started")) > 1
	})
	wait.Until(t, "a call is served", func() bool { return fate(do(t, s, "srv_echo", `{}`)) == fine })
}

// TestChildren: the children of a server end with it, and it with us.
func TestChildren(t *testing.T) {
	t.Parallel()
	needProc(t)
	o := process(t, "child")
	s := open(t, o)
	if _, err := do(t, s, "srv_die", `{}`); err == nil {
		t.Fatal("it did not die")
	}
	wait.Until(t, "there is another", func() bool { return len(noted(o, "child")) == 2 })
	wait.Until(t, "the first one's child is gone", func() bool { return !runs(noted(o, "child")[0]) })
	wait.Until(t, "it is connected to", func() bool { return fate(do(t, s, "srv_echo", `{}`)) == fine })
	s.Close()
	for _, pid := range append(noted(o, "child"), noted(o, "started")...) {
		wait.Until(t, pid+" is gone", func() bool { return !runs(pid) })
	}
}

// TestDead: a server that cannot start is tried again and again, says why, and tells no
// secrets.
func TestDead(t *testing.T) {
	t.Parallel()
	o := process(t, "dead")
	o.Env["SECRET"] = "swordfish"
	var log logged
	o.Log = log.logger()
	s := opened(t, o)
	err := s.Ready(t.Context())
	if err == nil || !has(err.Error(), "exit status 3", "its last words", "the secret is") {
		t.Errorf("the error is %v", err)
	}
	if has(fmt.Sprint(err, log.String()), "swordfish") {
		t.Errorf("the secret is told: %v\n%s", err, log.String())
	}
}

// client uses a server and waits to be killed.
func client() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	s, err := mcp.Open(mcp.Options{
		Name:    "srv",
		Command: []string{self},
		Env:     map[string]string{serverEnv: "child", "NOTES": os.Getenv("NOTES")},
	})
	if err == nil {
		err = s.Ready(context.Background())
	}
	if err != nil {
		panic(err)
	}
	note("ready", "yes")
	select {}
}

// TestKilled: when this program is killed, its servers and their children do not go on
// working.
func TestKilled(t *testing.T) {
	t.Parallel()
	needProc(t)
	o := process(t, "client")
	cmd := exec.Command(o.Command[0])
	cmd.Env = []string{serverEnv + "=client", "NOTES=" + o.Env["NOTES"], "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the server runs", func() bool {
		return len(noted(o, "started")) == 1 && len(noted(o, "child")) == 1
	})
	wait.Until(t, "the client has the server's tools", func() bool { return len(noted(o, "ready")) == 1 })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	for _, pid := range append(noted(o, "started"), noted(o, "child")...) {
		t.Cleanup(func() { _ = exec.Command("kill", "-KILL", pid).Run() })
		wait.Until(t, pid+" is gone", func() bool { return !runs(pid) })
	}
}

// TestEnvironment: a server gets the variables that are listed and the few that programs
// need, and not ours.
func TestEnvironment(t *testing.T) {
	t.Setenv("OUR_SECRET", "swordfish")
	o := mcp.Options{
		Command: []string{"sh", "-c", `env > "$OUT.part" && mv "$OUT.part" "$OUT"; exec cat`},
		Env: map[string]string{
			"OUT":    filepath.Join(t.TempDir(), "env"),
			"LISTED": "yes",
		},
	}
	opened(t, o)
	var f *os.File
	wait.For(t, func() (err error) {
		f, err = os.Open(o.Env["OUT"])
		return err
	})
	defer f.Close()
	vars := map[string]string{}
	for in := bufio.NewScanner(f); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), "=")
		vars[name] = value
	}
	if vars["LISTED"] != "yes" || vars["PATH"] != os.Getenv("PATH") || vars["OUR_SECRET"] != "" {
		t.Errorf("its environment is %v", vars)
	}
}
