package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The processes of the bench: how they are built and started, and what they, and others, use of
// the machine.

// build builds the server in a new folder, which the caller removes.
func build() (dir, binary string, err error) {
	if dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return "", "", err
	}
	binary = filepath.Join(dir, "holdfast")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/holdfast")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return dir, "", errors.Join(fmt.Errorf("build the server: %w", err), os.RemoveAll(dir))
	}
	return dir, binary, nil
}

// none, as -before, is that there is no build before.
const none = "none"

// buildBefore builds the server of a commit: of the last release if none is named, or else,
// as long as nothing is released, of the newest commit that is older than a day.
func buildBefore(dir, commit string) (name, binary string, err error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if commit == "" {
		if commit, err = git("describe", "--tags", "--abbrev=0", "HEAD~"); err != nil {
			commit, err = git("rev-list", "-1", "--before=1 day ago", "HEAD")
		}
	}
	if err == nil {
		name, err = git("rev-parse", "--short", commit+"^{commit}")
	}
	if err != nil || name == "" {
		return "", "", fmt.Errorf("there is no build before (name a commit with -before, or -before=none): %w", err)
	}
	tree := filepath.Join(dir, "before")
	if _, err := git("worktree", "add", "--detach", tree, name); err != nil {
		return "", "", fmt.Errorf("check out %s: %w", name, err)
	}
	binary = filepath.Join(dir, "holdfast-before")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/server")
	cmd.Dir, cmd.Stderr = tree, os.Stderr
	err = cmd.Run()
	_, err2 := git("worktree", "remove", "--force", tree)
	return name, binary, errors.Join(err, err2)
}

// process is a program that is measured, or that the measurement needs.
type process struct {
	url string
	cmd *exec.Cmd
	out bytes.Buffer
}

// launch starts a program and waits until it answers; {addr} in its arguments is replaced
// by a free address. If there are several CPUs, the program gets one for itself, and all
// others share another.
func launch(cpu int, env []string, program string, args ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	full := []string{program}
	for _, a := range args {
		full = append(full, strings.ReplaceAll(a, "{addr}", addr))
	}
	if _, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		full = append([]string{"taskset", "-c", strconv.Itoa(cpu)}, full...)
	}
	return start("http://"+addr, env, full)
}

// start starts a program and waits until it answers at the URL.
func start(url string, env, command []string) (*process, error) {
	p := &process{url: url, cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Env = append(append(os.Environ(), "HOLDFAST_DEMO_KILL=false"), env...) // stop must kill the server itself
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 2000 {
		if res, err := http.Get(p.url + "/readyz"); err == nil {
			res.Body.Close()
			return p, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("%s did not start: %s", strings.Join(command, " "), p.out.String())
}

func (p *process) stop() {
	// The process was only needed for the measurement.
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// cpu returns what the process has used so far: the time for which its threads ran, to
// the nanosecond. The ticks of /proc/PID/stat are of no use here: a load that is paced by
// timers runs between them, or exactly at them.
func (p *process) cpu() (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		return 0, errors.Join(errors.New("the load bench needs Linux with /proc/PID/schedstat"), err)
	}
	var total time.Duration
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) {
			continue // a thread that has ended in the meantime
		}
		f := strings.Fields(string(b))
		if err != nil || len(f) == 0 {
			return 0, errors.Join(errors.New(task+" cannot be read"), err)
		}
		ran, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s has an unknown form: %w", task, err)
		}
		total += time.Duration(ran)
	}
	return total, nil
}

func (p *process) memory() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("the load bench needs Linux: %w", err)
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, errors.New("/proc/PID/statm has an unknown form")
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// listen begins to watch what else the machine does. The returned function says how much of a
// processor others have used since: programs that are not the bench's, and other machines on
// the same hardware.
func (r *rig) listen(t *target) (since func() (float64, error), err error) {
	ours := func() (total time.Duration, err error) {
		var self syscall.Rusage
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &self)
		total = time.Duration(self.Utime.Nano() + self.Stime.Nano())
		if err2 := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &self); err2 == nil {
			total += time.Duration(self.Utime.Nano() + self.Stime.Nano())
		}
		for _, p := range []*process{t.process, r.model, r.redis.process, r.synced.process} {
			used, err2 := p.cpu()
			total, err = total+used, errors.Join(err, err2)
		}
		return total, err
	}
	begun := time.Now()
	all, err := machineCPU()
	own, err2 := ours()
	return func() (float64, error) {
		allNow, err := machineCPU()
		ownNow, err2 := ours()
		others := (allNow - all) - (ownNow - own)
		return max(0, others.Seconds()/time.Since(begun).Seconds()), errors.Join(err, err2)
	}, errors.Join(err, err2)
}

// machineCPU is what all processors were busy with so far, stolen time included.
func machineCPU() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("the load bench needs Linux: %w", err)
	}
	const ticks = 100 // a second, on all systems that Go runs on
	total := time.Duration(0)
	for i, f := range strings.Fields(strings.SplitN(string(b), "\n", 2)[0]) {
		n, err := strconv.ParseInt(f, 10, 64)
		// user, nice, system, idle, iowait, irq, softirq, steal
		if err == nil && i <= 8 && i != 4 && i != 5 {
			total += time.Duration(n) * (time.Second / ticks)
		}
	}
	return total, nil
}
