package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// line is the floor's connection to Redis, which all of its runs share. Commands that come
// while others are being written leave together in one write; replies come in their order.
type line struct {
	conn    net.Conn
	mu      sync.Mutex
	ready   sync.Cond // that there is something to send
	unsent  []byte
	waiting chan *asked
}

// asked is what a run has asked Redis for, until as many replies have come as commands were
// sent.
type asked struct {
	commands int
	text     [][]byte // the texts of the last reply, if it is wanted
	wanted   bool
	done     chan error
}

func dialRedis(addr string) (*line, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn, waiting: make(chan *asked, 1<<16)}
	l.ready.L = &l.mu
	go l.send()
	go l.receive()
	return l, nil
}

// command appends a command as Redis reads it.
func command(b []byte, words ...string) []byte {
	b = strconv.AppendInt(append(b, '*'), int64(len(words)), 10)
	for _, w := range words {
		b = strconv.AppendInt(append(b, "\r\n$"...), int64(len(w)), 10)
		b = append(append(b, "\r\n"...), w...)
	}
	return append(b, "\r\n"...)
}

// do has Redis execute n commands and waits for the replies to all of them.
func (l *line) do(n int, commands []byte) error { return l.ask(&asked{commands: n}, commands) }

// texts returns what Redis answers to one command, all texts in it one after the other.
func (l *line) texts(command []byte) ([][]byte, error) {
	a := &asked{commands: 1, wanted: true}
	err := l.ask(a, command)
	return a.text, err
}

func (l *line) ask(a *asked, commands []byte) error {
	a.done = make(chan error, 1)
	l.mu.Lock()
	l.unsent = append(l.unsent, commands...)
	l.waiting <- a
	l.mu.Unlock()
	l.ready.Signal()
	return <-a.done
}

func (l *line) send() {
	var sending []byte
	for {
		l.mu.Lock()
		for len(l.unsent) == 0 {
			l.ready.Wait()
		}
		sending, l.unsent = l.unsent, sending[:0]
		l.mu.Unlock()
		if _, err := l.conn.Write(sending); err != nil {
			return // the replies end, too
		}
	}
}

func (l *line) receive() {
	in := bufio.NewReaderSize(l.conn, 1<<16)
	for a := range l.waiting {
		var failed error
		for range a.commands {
			failed = errors.Join(failed, a.read(in))
		}
		a.done <- failed
	}
}

// read reads one reply, with all that it consists of.
func (a *asked) read(in *bufio.Reader) error {
	head, err := in.ReadSlice('\n')
	if err != nil || len(head) < 3 {
		return errors.Join(errors.New("the connection to Redis ended"), err)
	}
	kind, rest := head[0], string(head[1:len(head)-2])
	switch kind {
	case '-':
		return errors.New(rest)
	case '+', ':':
		return nil
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return fmt.Errorf("an unknown reply: %q", head)
	case kind == '*':
		for range n {
			err = errors.Join(err, a.read(in))
		}
	case n >= 0 && a.wanted:
		text := make([]byte, n+2)
		if _, err = io.ReadFull(in, text); err == nil {
			a.text = append(a.text, text[:n])
		}
	case n >= 0:
		_, err = in.Discard(n + 2)
	}
	return err
}
