// Package direct is a connection to one Redis on which scripts are called and nothing else. The
// commits of a server are such calls, one for nearly each word that a model says, and a client for
// all commands of Redis, which takes a connection out of its pool for each of them, asks the system
// whether that is alive, and makes a value of every argument and every reply, takes as long over
// them as everything else that a word needs.
//
// After any failure the call is left to that client, which knows how to repeat, and what errors mean.
package direct

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// openWithin bounds one try to open the connection, and again is the pause after one that failed.
	openWithin, again = time.Second, time.Second
	// maxKept is how large a buffer may be, in bytes, that is kept for the next calls.
	maxKept = 64 << 10
)

// Call is a call of a script, and what has become of it.
type Call struct {
	Hash string // of the script's text
	Keys []string
	Args []any // texts, bytes and whole numbers
	// Results are the numbers that it has returned.
	Results []int
	// Refused means that Redis has answered with an error.
	Refused bool
}

// Line is such a connection. It is closed at first. One goroutine uses it.
type Line struct {
	options *redis.Options
	timeout time.Duration // of the calls of a Do together; 0 for none

	conn   net.Conn // nil while it is closed
	in     *bufio.Reader
	out    []byte
	until  time.Time // the deadline of conn
	failed time.Time // when it could not be opened
}

// New returns a Line to where a client with these options connects.
func New(o *redis.Options) *Line { return &Line{options: o, timeout: max(o.ReadTimeout, 0)} }

// IsOpen reports whether it can be used.
func (l *Line) IsOpen() bool { return l.conn != nil }

// Open opens it if it is closed, unless that has just failed. There is no error: until it is
// open, the client is there.
func (l *Line) Open() {
	if l.conn != nil || time.Since(l.failed) < again {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	conn, err := l.options.Dialer(ctx, l.options.Network, l.options.Addr)
	if err != nil {
		l.failed = time.Now()
		return
	}
	l.conn, l.in, l.until = conn, bufio.NewReaderSize(conn, 4<<10), time.Now().Add(openWithin)
	if err := errors.Join(conn.SetDeadline(l.until), l.greet(ctx)); err != nil {
		l.Close()
		l.failed = time.Now()
	}
}

// Close closes it, if it is open.
func (l *Line) Close() {
	if l.conn != nil {
		_ = l.conn.Close() // nothing is on its way that anybody counts on
		l.conn = nil
	}
}

// greet says who this is, and which database is meant.
func (l *Line) greet(ctx context.Context) error {
	user, password := l.options.Username, l.options.Password
	if l.options.CredentialsProviderContext != nil {
		var err error
		if user, password, err = l.options.CredentialsProviderContext(ctx); err != nil {
			return err
		}
	}
	replies := 0
	l.out = l.out[:0]
	say := func(words ...string) {
		l.out = appendHead(l.out, '*', len(words))
		for _, w := range words {
			l.out = appendText(l.out, w)
		}
		replies++
	}
	switch {
	case user != "":
		say("AUTH", user, password)
	case password != "":
		say("AUTH", password)
	}
	if l.options.DB != 0 {
		say("SELECT", strconv.Itoa(l.options.DB))
	}
	if replies == 0 {
		return nil
	}
	if _, err := l.conn.Write(l.out); err != nil {
		return err
	}
	for range replies {
		if kind, _, err := readHead(l.in); err != nil || kind != '+' {
			return errors.Join(errUnexpected, err)
		}
	}
	return nil
}

// Do makes the calls, in one go. After an error the line is closed, and it is not known which of
// them were carried out.
func (l *Line) Do(calls []Call) error {
	err := l.do(calls)
	if err != nil {
		l.Close()
	}
	return err
}

func (l *Line) do(calls []Call) error {
	l.out = l.out[:0]
	for i := range calls {
		var err error
		if l.out, err = appendCall(l.out, &calls[i]); err != nil {
			return err
		}
	}
	if err := l.patience(); err != nil {
		return err
	}
	_, err := l.conn.Write(l.out)
	if cap(l.out) > maxKept {
		l.out = nil
	}
	if err != nil {
		return err
	}
	for i := range calls {
		if err := readReply(l.in, &calls[i]); err != nil {
			return err
		}
	}
	return nil
}

// patience sets the deadline of the connection, unless it is late enough. So it may be a quarter
// later than it has to be, and most calls need not set it.
func (l *Line) patience() error {
	if l.timeout == 0 {
		if l.until.IsZero() {
			return nil
		}
		l.until = time.Time{}
		return l.conn.SetDeadline(l.until)
	}
	now := time.Now()
	if l.until.Sub(now) >= l.timeout {
		return nil
	}
	l.until = now.Add(l.timeout * 5 / 4)
	return l.conn.SetDeadline(l.until)
}
