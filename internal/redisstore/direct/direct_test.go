package direct

import (
	"bufio"
	"context"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// asked reads so many words that a Redis is asked with, and their lengths.
func asked(in *bufio.Reader, lines int) string {
	var all strings.Builder
	for range lines {
		line, err := in.ReadString('\n')
		if err != nil {
			return all.String()
		}
		all.WriteString(strings.TrimSuffix(line, "\r\n") + " ")
	}
	return all.String()
}

// at returns a line to a Redis of one connection, which serve serves.
func at(o redis.Options, serve func(in *bufio.Reader, out io.WriteCloser)) *Line {
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			serve(bufio.NewReader(theirs), theirs)
		}()
		return ours, nil
	}
	return New(&o)
}

// TestLine: it greets, makes its calls in one go, and takes in what they return.
func TestLine(t *testing.T) {
	l := at(redis.Options{Username: "u", Password: "p", DB: 3, ReadTimeout: time.Second},
		func(in *bufio.Reader, out io.WriteCloser) {
			if got := asked(in, 12); got != "*3 $4 AUTH $1 u $1 p *2 $6 SELECT $1 3 " {
				t.Errorf("the greeting is %s", got)
			}
			_, _ = io.WriteString(out, "+OK\r\n+OK\r\n")
			if got := asked(in, 17+7+7); got !=
				"*8 $7 evalsha $1 a $1 1 $1 k $2 by $1 t $2 -1 $20 18446744073709551615 *3 $7 evalsha $1 b $1 0 "+
					"*3 $7 evalsha $1 c $1 0 " {
				t.Errorf("the calls are %s", got)
			}
			_, _ = io.WriteString(out, "*2\r\n:0\r\n:-7\r\n:3\r\n-NOSCRIPT none\r\n")
		})
	if l.Open(); !l.IsOpen() {
		t.Fatal("it is not open")
	}
	defer l.Close()
	calls := []Call{
		{Hash: "a", Keys: []string{"k"}, Args: []any{[]byte("by"), "t", int64(-1), uint64(1<<64 - 1)}},
		{Hash: "b"},
		{Hash: "c"},
	}
	if err := l.Do(calls); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(calls[0].Results, []int{0, -7}) || !reflect.DeepEqual(calls[1].Results, []int{3}) ||
		calls[0].Refused || !calls[2].Refused {
		t.Errorf("%+v", calls)
	}
}

// TestLineFails: what goes wrong closes the line, and it is opened again a second later.
func TestLineFails(t *testing.T) {
	const good = "*1\r\n:0\r\n"
	for _, c := range []struct{ name, greeting, reply string }{
		{"refused", "-WRONGPASS no\r\n", ""},
		{"a text", "+OK\r\n", "+OK\r\n"},
		{"a list of texts", "+OK\r\n", "*1\r\n$1\r\na\r\n"},
		{"no number", "+OK\r\n", ":x\r\n"},
		{"an empty line", "+OK\r\n", "\r\n"},
		{"the end", "+OK\r\n", ":"},
		{"silence", "+OK\r\n", "silence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := true
				l := at(redis.Options{Password: "p", ReadTimeout: time.Second},
					func(in *bufio.Reader, out io.WriteCloser) {
						greeting, reply := c.greeting, c.reply
						if !broken {
							greeting, reply = "+OK\r\n", good
						}
						asked(in, 5)
						_, _ = io.WriteString(out, greeting)
						asked(in, 7)
						if reply == "silence" {
							asked(in, 1)
						}
						_, _ = io.WriteString(out, reply)
					})
				if l.Open(); l.IsOpen() == strings.HasPrefix(c.greeting, "-") {
					t.Fatalf("it is open: %v", l.IsOpen())
				}
				if l.IsOpen() && l.Do([]Call{{Hash: "a"}}) == nil || l.IsOpen() {
					t.Error("it goes on")
				}
				broken = false
				time.Sleep(again)
				if l.Open(); !l.IsOpen() {
					t.Fatal("it is not opened again")
				}
				if err := l.Do([]Call{{Hash: "a"}}); err != nil {
					t.Error(err)
				}
				l.Close()
			})
		})
	}
}
