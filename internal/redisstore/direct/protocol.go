package direct

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
)

// The protocol of Redis, as far as scripts need it that return numbers.

// errUnexpected means that Redis has answered something else than was asked for.
var errUnexpected = errors.New("an unexpected reply of Redis")

// appendCall writes a call.
func appendCall(b []byte, c *Call) ([]byte, error) {
	b = appendHead(b, '*', 3+len(c.Keys)+len(c.Args))
	b = appendText(b, "evalsha")
	b = appendText(b, c.Hash)
	b = appendNumber(b, int64(len(c.Keys)))
	for _, k := range c.Keys {
		b = appendText(b, k)
	}
	for _, a := range c.Args {
		switch a := a.(type) {
		case []byte:
			b = append(append(appendHead(b, '$', len(a)), a...), "\r\n"...)
		case string:
			b = appendText(b, a)
		case int:
			b = appendNumber(b, int64(a))
		case int64:
			b = appendNumber(b, a)
		case uint64:
			var room [20]byte
			b = appendText(b, string(strconv.AppendUint(room[:0], a, 10)))
		default:
			return b, fmt.Errorf("an argument of a script is a %T", a)
		}
	}
	return b, nil
}

// appendHead writes what comes before so many words, or before a word of so many bytes.
func appendHead(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...)
}

func appendText(b []byte, text string) []byte {
	return append(append(appendHead(b, '$', len(text)), text...), "\r\n"...)
}

func appendNumber(b []byte, n int64) []byte {
	var room [20]byte
	return appendText(b, string(strconv.AppendInt(room[:0], n, 10)))
}

// readReply reads the reply to a call: a number, a list of them, or an error.
func readReply(in *bufio.Reader, c *Call) error {
	kind, text, err := readHead(in)
	if err != nil {
		return err
	}
	switch kind {
	case '-':
		c.Refused = true
		return nil
	case ':':
		return c.result(text)
	case '*':
	default:
		return errUnexpected
	}
	n, err := strconv.Atoi(string(text))
	for ; n > 0 && err == nil; n-- {
		if kind, text, err = readHead(in); err == nil {
			if kind != ':' {
				return errUnexpected
			}
			err = c.result(text)
		}
	}
	return err
}

// result notes a number that the script has returned.
func (c *Call) result(text []byte) error {
	n, err := strconv.Atoi(string(text))
	c.Results = append(c.Results, n)
	return err
}

// readHead reads a line: what kind of reply begins, and the rest, which is valid until the next.
func readHead(in *bufio.Reader) (kind byte, rest []byte, err error) {
	line, err := in.ReadSlice('\n')
	switch {
	case err != nil:
		return 0, nil, err
	case len(line) < 3:
		return 0, nil, errUnexpected
	}
	return line[0], line[1 : len(line)-2], nil
}
