package fakeredis

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Redis's protocol, as far as requests and replies have to be told apart.

// value is one value as it stands in the stream.
type value struct {
	raw   []byte
	parts []string // of an array: its elements that are strings, else ""
}

// readValue reads one value of RESP2.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return value{}, err
	}
	v := value{raw: line}
	switch line[0] {
	case '+', '-', ':':
		v.parts = []string{string(bytes.TrimSpace(line[1:]))}
		return v, nil
	case '$', '*':
	default:
		return value{}, fmt.Errorf("a value begins with %q", line[0])
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < 0 {
		return v, err
	}
	if line[0] == '$' {
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return value{}, err
		}
		v.raw = append(v.raw, text...)
		v.parts = []string{string(text[:n])}
		return v, nil
	}
	for range n {
		one, err := readValue(r)
		if err != nil {
			return value{}, err
		}
		v.raw = append(v.raw, one.raw...)
		part := ""
		if len(one.parts) == 1 {
			part = one.parts[0]
		}
		v.parts = append(v.parts, part)
	}
	return v, nil
}
