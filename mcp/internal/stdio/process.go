package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// The process of a server: started in a group of its own, read from and written to through
// pipes, and ended together with its children. Its standard error goes to the log, in bounds.

// Spec says how to start a server.
type Spec struct {
	// Command is the program and its arguments.
	Command []string
	// Dir is where it runs; empty means where this process runs.
	Dir string
	// Env is its whole environment, as "name=value".
	Env []string
	// Grace is how long it may take to end after its standard input was closed, and once
	// more after it was told to.
	Grace time.Duration
	// Stuck is how long it may take to read a message; then it is ended.
	Stuck time.Duration
	// Log gets what it writes to its standard error. Redact takes secrets out of that.
	Log    *slog.Logger
	Redact func(string) string
}

// process is a running server with its children, which are a process group.
type process struct {
	spec   Spec
	cmd    *exec.Cmd
	stdin  *os.File // pipes, whose writes can have deadlines
	stdout *os.File
	stderr *os.File
	exited chan struct{} // closed when it has ended and was waited for
	silent chan struct{} // closed when its standard error is at its end
	state  error         // how it ended; read it after exited is closed
	wg     sync.WaitGroup

	mu   sync.Mutex
	last string // the last line of its standard error
}

// start starts the process. The caller's goroutine must be locked to its thread and outlive
// the process: on Linux the process is killed when the thread that started it ends.
func start(spec Spec) (*process, error) {
	p := &process{spec: spec, exited: make(chan struct{}), silent: make(chan struct{})}
	p.cmd = exec.Command(spec.Command[0], spec.Command[1:]...)
	p.cmd.Dir, p.cmd.Env = spec.Dir, spec.Env
	inGroup(p.cmd)
	var theirs []*os.File
	pipe := func(reads bool) (ours *os.File, err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if reads {
			r, w = w, r
		}
		theirs = append(theirs, w)
		return r, nil
	}
	var errs [3]error
	p.stdin, errs[0] = pipe(true)
	p.stdout, errs[1] = pipe(false)
	p.stderr, errs[2] = pipe(false)
	err := errors.Join(errs[:]...)
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = p.cmd.Start()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, err
	}
	g, err := guardGroup(p.cmd.Process.Pid)
	if err != nil {
		spec.Log.Warn("if this process is killed, the children of an MCP server will go on", "error", err)
	}
	p.wg.Go(p.logErrors)
	p.wg.Go(func() {
		p.state = p.cmd.Wait()
		killGroup(p.cmd.Process.Pid) // its children end with it
		close(p.exited)
		g.dismiss()
	})
	return p, nil
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// stop ends the process and its children: by closing its input, by telling it, by force.
func (p *process) stop() {
	p.stdin.Close()
	if !within(p.exited, p.spec.Grace) {
		endGroup(p.cmd.Process.Pid)
		if !within(p.exited, p.spec.Grace) {
			p.kill()
		}
	}
	<-p.exited
	p.closePipes() // a child that has left the group may still hold the other ends
	p.wg.Wait()
}

// within waits until c is closed, and reports whether it was in time.
func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// kill ends the process and its children by force.
func (p *process) kill() {
	select {
	case <-p.exited: // the number may be somebody else's by now
	default:
		killGroup(p.cmd.Process.Pid)
	}
}

// ended returns how the process ended, with the last that it said. It waits a moment for
// the end.
func (p *process) ended(d time.Duration) error {
	if !within(p.exited, d) {
		return errors.New("the process has closed its output")
	}
	within(p.silent, d)
	err := errors.New("the process has ended")
	if p.state != nil {
		err = fmt.Errorf("the process has ended: %w", p.state)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != "" {
		err = fmt.Errorf("%w; its last words: %s", err, p.last)
	}
	return err
}

// The bounds of what is logged of a server's standard error.
const (
	maxLogLine  = 2 << 10 // bytes
	maxLogLines = 100     // in a second
)

// logErrors logs what the process writes to its standard error, in bounds.
func (p *process) logErrors() {
	defer close(p.silent)
	in := bufio.NewReaderSize(p.stderr, maxLogLine)
	var second time.Time
	lines, left := 0, 0
	for {
		line, err := readLine(in)
		if line != "" {
			line = p.spec.Redact(line)
			p.mu.Lock()
			p.last = wire.Quote([]byte(line))
			p.mu.Unlock()
			if now := time.Now(); now.Sub(second) >= time.Second {
				if left > 0 {
					p.spec.Log.Warn("lines of an MCP server's standard error are left out", "lines", left)
				}
				second, lines, left = now, 0, 0
			}
			if lines++; lines <= maxLogLines {
				p.spec.Log.Debug("an MCP server says", "line", line)
			} else {
				left++
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine returns the beginning of the next line, and skips what does not fit the buffer.
func readLine(in *bufio.Reader) (string, error) {
	part, more, err := in.ReadLine()
	line := string(part)
	for more && err == nil {
		_, more, err = in.ReadLine()
	}
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return line, err
}
