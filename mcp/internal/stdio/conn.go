// Package stdio connects the MCP client to servers that are child processes: one JSON
// message a line, on standard input and output.
//
// The SDK's transport for this ends the connection at a line that is no message, such as
// the banner of a server, and a server that does not read its input blocks every call. This
// one skips such a line and says so in the log, writes from a goroutine of its own, and ends
// the whole process group in the end.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Conn is a connection to a process. It implements the SDK's Connection.
type Conn struct {
	p     *process
	inbox *wire.Inbox
	queue chan outgoing
	limit int
	log   *slog.Logger

	stopping  chan struct{} // closed by the first Close
	closeOnce sync.Once
	done      chan struct{} // closed when the process and all goroutines have ended
}

// outgoing is a message on its way to the process.
type outgoing struct {
	line []byte
	req  *wire.Request
}

// queueLength bounds the messages that wait until the process reads. Calls wait for a
// place no longer than for an answer.
const queueLength = 256

// Start starts a server and connects to it. A message of the server may have limit bytes.
func Start(spec Spec, limit int) (*Conn, error) {
	c := &Conn{
		inbox:    wire.NewInbox(),
		queue:    make(chan outgoing, queueLength),
		limit:    limit,
		log:      spec.Log,
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
	started := make(chan error)
	// The process is killed when the thread that started it ends, so the thread is kept
	// for this goroutine, which waits for the process.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := start(spec)
		c.p = p
		started <- err
		if err != nil {
			return
		}
		c.serve()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// lastWords is how long what a process has written is still read after it has ended.
const lastWords = time.Second

// serve moves messages until the connection is closed, and then ends the process.
func (c *Conn) serve() {
	var wg sync.WaitGroup
	wg.Go(func() {
		err := c.read()
		if errors.Is(err, io.EOF) {
			err = c.p.ended(lastWords)
		}
		c.inbox.Close(err)
	})
	wg.Go(c.write)
	wg.Go(func() {
		select {
		case <-c.p.exited: // a child that has left the group may still hold its output open
			_ = c.p.stdout.SetReadDeadline(time.Now().Add(lastWords))
		case <-c.stopping:
		}
	})
	<-c.stopping
	c.inbox.Close(nil)
	c.p.stop()
	wg.Wait()
}

// read hands the lines of the process to the inbox.
func (c *Conn) read() error {
	in := bufio.NewReaderSize(c.p.stdout, 64<<10)
	warned := false
	for {
		line, err := c.line(in)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		messages, err := decode(line)
		if err != nil && !warned {
			warned = true // once: a server that logs to its standard output does so often
			c.log.Warn("an MCP server writes lines to its standard output that are no messages; they are skipped",
				"line", wire.Quote([]byte(c.p.spec.Redact(string(line)))), "error", err)
		}
		for _, m := range messages {
			if !c.inbox.Put(m) {
				return nil
			}
		}
	}
}

// line returns the next line, without spaces around it.
func (c *Conn) line(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > c.limit {
			return nil, fmt.Errorf("a line of the server has more than %d bytes", c.limit)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSpace(line), nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, io.EOF
		}
	}
}

// decode returns the message or, in the older revisions, the messages of a line.
func decode(line []byte) ([]jsonrpc.Message, error) {
	parts := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &parts); err != nil {
			return nil, err
		}
	}
	var messages []jsonrpc.Message
	for _, part := range parts {
		m, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return messages, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// write writes the queued messages, one after the other.
func (c *Conn) write() {
	for {
		select {
		case m := <-c.queue:
			if !m.req.Begin() {
				continue
			}
			_ = c.p.stdin.SetWriteDeadline(time.Now().Add(c.p.spec.Stuck)) // there are deadlines for pipes
			if _, err := c.p.stdin.Write(m.line); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					c.log.Warn("an MCP server does not read its input; it is ended")
					c.p.kill()
				}
				return // the reader tells why
			}
			m.req.Written()
		case <-c.stopping:
			return
		}
	}
}

// Read implements the SDK's Connection.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) { return c.inbox.Read(ctx) }

// Write implements the SDK's Connection: it queues the message.
func (c *Conn) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	out := outgoing{line: append(line, '\n')}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		out.req = wire.RequestFrom(ctx)
	}
	select {
	case c.queue <- out:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.inbox.Closed():
		return io.ErrClosedPipe
	}
}

// Put hands a message to the connection's reader, as if the server had sent it.
func (c *Conn) Put(m jsonrpc.Message) bool { return c.inbox.Put(m) }

// Close implements the SDK's Connection. It does not wait: see [Conn.Wait].
func (c *Conn) Close() error {
	c.closeOnce.Do(func() { close(c.stopping) })
	return nil
}

// Wait waits until a closed connection's process and children have ended.
func (c *Conn) Wait() { <-c.done }

// SessionID implements the SDK's Connection: there are no sessions.
func (c *Conn) SessionID() string { return "" }
