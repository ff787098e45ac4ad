package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// Servers and Redis that start, restart and come back in an unlucky order.

// signal sends the process a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// awaitLines waits until the process has logged n lines with these words.
func (p *process) awaitLines(words string, n int) {
	p.t.Helper()
	p.awaitOutput(func(text string) bool { return strings.Count(text, words) >= n }, nil)
}

// TestStartsBeforeRedis: a server that starts before Redis waits for it, says so, and
// serves once Redis is there.
func TestStartsBeforeRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Kill(t)
	p := launch(t, binary, redistest.FreeAddr(t), redis.URL())
	p.awaitLines(`level=WARN msg="waiting for Redis" for=10s`, 1)
	redis.Run(t)
	p.ready()
	p.awaitLines(`level=INFO msg="Redis answers" after=`, 1)
}

// TestRedisNeverStarts: without Redis the server says after ten seconds what is wrong, and
// ends with exit code 1. A command does the same with its own exit code.
func TestRedisNeverStarts(t *testing.T) {
	t.Parallel()
	nobody := "redis://" + redistest.FreeAddr(t)
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"server": {[]string{"--addr", redistest.FreeAddr(t), "--store", nobody}, 1},
		"check":  {[]string{"check", nobody}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, exec.Command(binary, c.args...))
			p.awaitLines(`msg="waiting for Redis" for=10s`, 1)
			<-p.done
			if code := p.cmd.ProcessState.ExitCode(); code != c.code ||
				!strings.Contains(p.out.String(), "is it running, and is the address right?") {
				t.Errorf("exit code %d, want %d: %s", code, c.code, p.out)
			}
		})
	}
}

// TestNobodyIsRobbed: Redis dies for longer than the lease and comes back. The owner of a run
// is slower to notice than another server, which still leaves it the run.
func TestNobodyIsRobbed(t *testing.T) {
	t.Parallel()
	const away = `msg="the lease could not be renewed"`
	for name, fresh := range map[string]bool{"by one that was there": false, "by one that starts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			db, args := redis.Database(t), []string{"--lease=3s", "--demo-delay=10ms"}
			owner := start(t, redistest.FreeAddr(t), db, args...)
			other := owner
			if !fresh {
				other = start(t, redistest.FreeAddr(t), db, args...)
			}
			comeBack := func() {
				redis.Kill(t)
				owner.awaitLines(away, 4) // they are a second apart
				other.awaitLines(away, 4)
				owner.signal(syscall.SIGSTOP)
				redis.Run(t)
				if fresh {
					other = start(t, redistest.FreeAddr(t), db, args...)
				} else {
					other.awaitLines(`msg="in contact with the store again`, 1)
				}
				owner.signal(syscall.SIGCONT)
			}
			res, err := post(t.Context(), owner.url, input("t", "r1", userMessage("u1", "slow 100")))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			words, last, notices := 0, record{}, ""
			err = readStream(res.Body, func(r record) bool {
				switch last = r; r.kind() {
				case "TEXT_MESSAGE_CONTENT":
					if words++; words == 1 {
						comeBack()
					}
				case "CUSTOM":
					notices += fmt.Sprint(r.Data["name"], " ")
				}
				return false
			})
			if err != nil || last.kind() != "RUN_FINISHED" || notices != "holdfast.store_recovered " {
				t.Errorf("the stream ended with %s, %v, and said %q; the owner: %s\nthe other: %s", last.Raw, err,
					notices, owner.out, other.out)
			}
		})
	}
}

// TestResumeMeansResume: a server on Redis is killed and started again at once, so its
// lease has not run out. An empty-messages POST waits, and then shows a run that goes on.
func TestResumeMeansResume(t *testing.T) {
	t.Parallel()
	for _, recovery := range []string{"on", "off"} {
		t.Run("recover="+recovery, func(t *testing.T) {
			t.Parallel()
			addr, db := redistest.FreeAddr(t), newRedis(t)
			args := []string{"--recover=" + recovery, "--demo-delay=5ms"}
			p := start(t, addr, db, args...)
			res, err := post(t.Context(), p.url, input("t", "r1", userMessage("u1", "slow 40")))
			if err != nil {
				t.Fatal(err)
			}
			if err := readStream(res.Body, func(r record) bool {
				return r.kind() == "TEXT_MESSAGE_CONTENT"
			}); err != nil {
				t.Fatal(err)
			}
			p.kill()
			res.Body.Close()
			p = start(t, addr, db, args...)
			message := make(chan int, 1)
			if recovery == "off" {
				// A new message waits as well, for its own answer.
				go func() { message <- postStatus(t, p.url, input("t", "r3", userMessage("u2", "hello?"))) }()
			} else {
				message <- http.StatusConflict
			}
			res, err = post(t.Context(), p.url, input("t", "r2"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var seen []record
			if err := readStream(res.Body, func(r record) bool { seen = append(seen, r); return false }); err != nil ||
				len(seen) == 0 {
				t.Fatalf("%d: %v", res.StatusCode, err)
			}
			first, last := seen[0], seen[len(seen)-1]
			if first.Data["runId"] != "r2" || last.kind() != "RUN_FINISHED" {
				t.Errorf("the stream begins with %s and ends with %s", first.Raw, last.Raw)
			}
			for _, r := range seen {
				if r.Data["code"] == codes.CutOff {
					t.Errorf("the stream has %s", r.Raw)
				}
			}
			if code := <-message; code != http.StatusConflict {
				t.Errorf("the new message: %d", code)
			}
		})
	}
}

// postStatus posts and returns the status of the response; 0 without one.
func postStatus(t *testing.T, url string, body []byte) int {
	res, err := post(t.Context(), url, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}
