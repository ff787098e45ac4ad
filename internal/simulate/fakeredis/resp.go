package fakeredis

import (
	"bytes"
	"fmt"
	"strconv"
)

// Redis's protocol, as far as requests and replies have to be told apart.

// value is one value as it stands in the stream.
type value struct {
	raw   []byte
	parts []string // of an array: its elements that are strings, else ""
}

// valuesOf reads the values of RESP2 that data begins with. It returns what is left, which is not whole.
func valuesOf(data []byte) (values []value, rest []byte, err error) {
	for len(data) > 0 {
		v, n, err := valueOf(data)
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			break
		}
		values, data = append(values, v), data[n:]
	}
	return values, data, nil
}

// valueOf reads the value that data begins with, and returns how many bytes it has; 0 if it is not whole.
func valueOf(data []byte) (v value, size int, err error) {
	line, _, whole := bytes.Cut(data, []byte("\r\n"))
	if !whole {
		return value{}, 0, nil
	}
	if len(line) == 0 {
		return value{}, 0, fmt.Errorf("a value is empty: %q", data)
	}
	size = len(line) + 2
	switch line[0] {
	case '+', '-', ':':
		return value{data[:size:size], []string{string(line[1:])}}, size, nil
	case '$', '*':
	default:
		return value{}, 0, fmt.Errorf("a value begins with %q", line[0])
	}
	n, err := strconv.Atoi(string(line[1:]))
	switch {
	case err != nil:
		return value{}, 0, err
	case n < 0:
		return value{raw: data[:size:size]}, size, nil
	case line[0] == '$':
		text := size
		if size += n + 2; len(data) < size {
			return value{}, 0, nil
		}
		return value{data[:size:size], []string{string(data[text : text+n])}}, size, nil
	}
	v.parts = make([]string, 0, n)
	for range n {
		one, read, err := valueOf(data[size:])
		if err != nil || read == 0 {
			return value{}, 0, err
		}
		part := ""
		if len(one.parts) == 1 {
			part = one.parts[0]
		}
		v.parts, size = append(v.parts, part), size+read
	}
	v.raw = data[:size:size]
	return v, size, nil
}
