package command

// The button of the page that kills the server. With the demo model, and for its own machine
// alone, the program is two processes: the first one starts itself once more, as the server,
// and starts it again when the page has had it killed. They end together: when the first one
// dies, however that happens, the server ends at once.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-agents/holdfast/internal/settings"
	"github.com/holdfast-agents/holdfast/server"
)

const (
	// parentVariable has, in the server's environment, the id of the process that revives it.
	parentVariable = "HOLDFAST_REVIVED_BY"
	// tokenVariable has, in the server's environment, the token of the operator that each
	// server of that process has, if its store does not keep one.
	tokenVariable = "HOLDFAST_REVIVED_TOKEN"
	// askDescriptor is the file by which the server asks that process to kill it.
	askDescriptor = 3
	// exitSignalled is what is added to the number of the signal that ended a process, as
	// shells do it.
	exitSignalled = 128
)

// revivable reports whether the page may kill the server: it is for trying out, on this
// machine, and nothing is lost.
func (o *options) revivable() bool {
	c := &o.settings.Config
	if !o.settings.DemoKill || runtime.GOOS == "windows" || strings.HasPrefix(c.Store, "memory") {
		return false
	}
	if o.getenv("HOLDFAST_API_KEYS") != "" || o.settings.Tokens.JWKS != "" || c.AllowAnonymous || c.BehindProxy {
		return false
	}
	host, port, err := net.SplitHostPort(c.Addr)
	ip := net.ParseIP(host)
	if err != nil || port == "0" || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false // with another port each time nobody would find it again
	}
	return o.onlyDemo()
}

// onlyDemo reports whether no agent has another model than the demo model.
func (o *options) onlyDemo() bool {
	var journal io.Writer
	if o.settings.DemoJournal != "" {
		journal = io.Discard
	}
	_, models, err := server.ValidateAgents(cmp.Or(o.settings.File, defaultConfig), o.parts(journal))
	if errors.Is(err, fs.ErrNotExist) && o.settings.File == "" {
		models, err = []string{""}, nil
	}
	return err == nil && !slices.ContainsFunc(models, func(names string) bool {
		return slices.ContainsFunc(settings.Split(cmp.Or(names, o.settings.Config.DefaultModel)),
			func(name string) bool { return name != "demo" })
	})
}

// hasParent reports whether this process is the server of one that revives it.
func hasParent(getenv func(string) string) bool {
	return getenv(parentVariable) == strconv.Itoa(os.Getppid())
}

// kill returns how the page has the server killed; nil if it cannot.
func (o *options) kill() func() {
	if !hasParent(o.getenv) || !o.revivable() {
		return nil
	}
	return func() {
		if _, err := os.NewFile(askDescriptor, "parent").Write([]byte("k")); err != nil {
			os.Exit(exitSignalled + int(syscall.SIGKILL)) // there is no parent any more
		}
	}
}

// operatorToken returns the token of the operator; "" leaves it to the server. A page goes on
// working when its server was killed: the directory of an embedded store keeps the token, and
// for other stores the parent does.
func (o *options) operatorToken() string {
	token := o.getenv("HOLDFAST_OPERATOR_TOKEN")
	if token == "" && hasParent(o.getenv) && !strings.HasPrefix(o.settings.Config.Store, "file:") {
		return o.getenv(tokenVariable)
	}
	return token
}

// needsReviver reports whether the program that is started with these arguments is to be two
// processes. Mistakes in them are told by the server.
func needsReviver(args []string, getenv func(string) string) bool {
	if hasParent(getenv) {
		return false
	}
	o, err := parseOptions(args, getenv)
	return err == nil && !o.settings.Version && o.revivable()
}

// withParent prepares a server that is revived, and returns a context that is done when it has
// to shut down. The parent tells it through its standard input: each signal is a byte, of
// which the second one ends the server at once, and so does the parent's death. Whether the
// signal came here too, because it was meant for both, makes no difference.
func withParent(ctx context.Context, in io.Reader, exit func(code int)) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // until the process ends
		told := make([]byte, 1)
		for signals := 0; ; signals++ {
			if _, err := in.Read(told); err != nil || signals > 0 {
				exit(exitFailed)
				return
			}
			cancel()
		}
	}()
	return ctx
}

// revive runs the server until it ends by itself, and returns its exit code.
func revive(args []string, stderr io.Writer) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // with nohup the server ignores it too
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	token := rand.Text()
	for {
		end, killed, err := live(args, token, signals)
		if err != nil {
			fmt.Fprintf(stderr, "holdfast: the server cannot be started: %v\n", err)
			return exitFailed
		}
		if !killed {
			return exitCode(end)
		}
		fmt.Fprintf(stderr, "holdfast: the page had the server killed (%s); it is started again\n", end)
	}
}

// live runs the server once. killed: at the request of its page.
func live(args []string, token string, signals <-chan os.Signal) (end *os.ProcessState, killed bool, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, false, err
	}
	in, tell, err := os.Pipe()
	if err != nil {
		return nil, false, err
	}
	defer tell.Close()
	asks, ask, err := os.Pipe()
	if err != nil {
		return nil, false, errors.Join(err, in.Close())
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, os.Stdout, os.Stderr, []*os.File{ask}
	cmd.Env = append(os.Environ(), parentVariable+"="+strconv.Itoa(os.Getpid()), tokenVariable+"="+token)
	err = cmd.Start()
	if err = errors.Join(err, in.Close(), ask.Close()); err != nil {
		return nil, false, errors.Join(err, asks.Close())
	}
	asked := make(chan bool, 1)
	go func() {
		n, _ := asks.Read(make([]byte, 1)) // without a byte the server has ended
		if n == 1 {
			_ = cmd.Process.Kill() // it may have ended meanwhile
		}
		asked <- n == 1
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its state says how it ended
	}()
	for {
		select {
		case s := <-signals:
			passOn(s, cmd.Process, tell)
		case <-ended:
			_ = asks.Close() // it was only read from
			return cmd.ProcessState, <-asked, nil
		}
	}
}

// passOn tells the server of a signal. An error means that it has ended.
func passOn(s os.Signal, server *os.Process, tell io.Writer) {
	if s == syscall.SIGHUP {
		_ = server.Signal(s)
		return
	}
	_, _ = tell.Write([]byte("s"))
}

// exitCode returns how a process ended, as shells do.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return state.ExitCode()
}
