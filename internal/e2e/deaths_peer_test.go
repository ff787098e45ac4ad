package e2e

// The other side of the calls of TestDeaths, and the network to it.

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// peer is the other side: the worker that is a service, or the MCP server made with the
// official npm package, over HTTP or started by the workers.
type peer struct {
	*crew
	scene
	addr    string
	wire    *wire // nil if the network does not die
	notes   string
	process *process
}

func newPeer(c *crew, s scene) *peer {
	c.Helper()
	p := &peer{crew: c, scene: s, notes: c.TempDir()}
	if s.side != "service" {
		testkit.NPM(c.T, "test/mcp")
	}
	if s.side == "stdio" {
		return p
	}
	p.addr = redistest.FreeAddr(c.T)
	if s.dies == diesNetwork {
		p.wire = newWire(c.T, p.addr)
	}
	return p
}

// arguments are a worker's, so that it calls this side.
func (p *peer) arguments() []string {
	p.Helper()
	at := p.addr
	if p.wire != nil {
		at = p.wire.addr
	}
	if p.side == "service" {
		return []string{"--service=http://" + at}
	}
	o := map[string]any{"name": "npm"}
	if p.side == "stdio" {
		o["command"], o["env"] = []string{"node", p.script()}, p.env()
	} else {
		o["url"], o["allow"] = "http://"+at+"/mcp", []string{"127.0.0.1"}
	}
	if p.moment == atUnsent && p.dies != diesHoldfast {
		o["timeout"] = 3 * time.Second // how long a call waits for a server that was just lost
	}
	return []string{"--mortal-mcp=" + mustText(p.T, o)}
}

func (p *peer) script() string {
	p.Helper()
	return filepath.Join(testkit.NPM(p.T, "test/mcp"), "server.mjs")
}

func (p *peer) env() map[string]string {
	return map[string]string{"NOTES": p.notes, "JOURNAL": p.journal, "HOLDS": p.holds}
}

// start starts it, also once more after its death.
func (p *peer) start() {
	p.Helper()
	switch p.side {
	case "stdio":
		// The workers start it, as soon as it can be.
		_ = os.Remove(filepath.Join(p.holds, "down"))
	case "service":
		p.process = launch(p.T, workerBinary, p.addr, "none", "--serve", "--journal="+p.journal, "--holds="+p.holds,
			"--name=peer").ready()
	default:
		_, port, err := net.SplitHostPort(p.addr)
		if err != nil {
			p.Fatal(err)
		}
		cmd := exec.Command("node", p.script(), "http")
		cmd.Env = append(os.Environ(), "PORT="+port)
		for name, value := range p.env() {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		p.process = run(p.T, cmd)
		p.accepts()
	}
}

// accepts waits until the server accepts connections.
func (p *peer) accepts() {
	p.Helper()
	wait.For(p.T, func() error {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			return fmt.Errorf("the MCP server does not start: %s", p.process.out)
		}
		return conn.Close()
	})
}

// connected waits until the worker has the server's tools: a model calls those that there are.
func (p *peer) connected() {
	p.Helper()
	wait.For(p.T, func() error {
		if out := p.p.out.String(); !strings.Contains(out, "connected to an MCP server") {
			return fmt.Errorf("the worker does not connect: %s", out)
		}
		return nil
	})
}

// kill is kill -9. If stays, a server that the worker starts cannot be started again.
func (p *peer) kill(stays bool) {
	p.Helper()
	if p.side != "stdio" {
		p.process.kill()
		return
	}
	if stays {
		p.file("down")
	}
	for _, line := range p.lines("peer started ") {
		if f := fields(line); f["ppid"] == strconv.Itoa(p.p.cmd.Process.Pid) {
			pid, err := strconv.Atoi(f["pid"])
			if err != nil {
				p.Fatal(err)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if stays {
		p.p.awaitOutput(func(text string) bool {
			return strings.Contains(text, "the connection to an MCP server is lost")
		}, nil)
	}
}

// wire is the network between a worker and the other side.
type wire struct {
	t        *testing.T
	addr, to string
	wg       sync.WaitGroup

	l        net.Listener
	accepted chan struct{} // closed when the listener is really gone

	mu    sync.Mutex
	conns map[net.Conn]bool // nil while it is cut
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{t: t, addr: redistest.FreeAddr(t), to: to}
	w.join()
	t.Cleanup(func() { w.cut(); w.wg.Wait() })
	return w
}

// join makes connections possible. While there were none, another program may have taken the
// port for a moment.
func (w *wire) join() {
	w.t.Helper()
	var l net.Listener
	wait.For(w.t, func() (err error) {
		l, err = net.Listen("tcp", w.addr)
		return err
	})
	accepted := make(chan struct{})
	w.l, w.accepted = l, accepted
	w.mu.Lock()
	w.conns = map[net.Conn]bool{}
	w.mu.Unlock()
	w.wg.Go(func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.carry(conn) })
		}
	})
}

// cut breaks all connections, and lets no others be made.
func (w *wire) cut() {
	w.l.Close()
	<-w.accepted
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	w.conns = nil
}

// carry carries what is sent over a connection.
func (w *wire) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer to.Close()
	w.mu.Lock()
	whole := w.conns != nil
	if whole {
		w.conns[from], w.conns[to] = true, true
	}
	w.mu.Unlock()
	if !whole {
		return
	}
	w.wg.Go(func() { _, _ = io.Copy(to, from); to.Close() })
	_, _ = io.Copy(from, to)
}
