// Command format keeps Go code within 120 columns, and literals of more than four keyed
// elements at one element a line. It lists the files that it would change, and with -w it
// changes them.
//
//	format [-w] FILE…
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"
)

// columns is how wide a line may be; a tab counts as tabWidth.
const (
	columns  = 120
	tabWidth = 4
)

func main() {
	write := flag.Bool("w", false, "change the files")
	flag.Parse()
	wrong := 0
	for _, path := range flag.Args() {
		changed, err := file(path, *write)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if changed {
			fmt.Println(path)
			wrong++
		}
	}
	if wrong > 0 && !*write {
		fmt.Fprintf(os.Stderr, "%d files are not formatted: make fmt\n", wrong)
		os.Exit(1)
	}
}

// file reports whether the file is not formatted, and formats it if write is set.
func file(path string, write bool) (bool, error) {
	before, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	after, err := source(before, strings.HasSuffix(path, "_test.go"))
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(before, after) {
		return false, nil
	}
	if write {
		err = os.WriteFile(path, after, 0o644)
	}
	return true, err
}

// source returns the formatted text of a file. In tests, literals whose elements fit on a line
// stay as they are: cases are read by column. Nothing here can break raw strings of several
// lines, what examples print, and pairs that gofmt aligns.
func source(src []byte, test bool) ([]byte, error) {
	first, breaking := []step{joined}, []step{logLines, conditions, texts}
	if !test {
		first = append(first, literals)
	}
	return repeated(src, func(src []byte) ([]byte, error) {
		src, err := repeated(src, first...)
		if err != nil {
			return nil, err
		}
		return repeated(src, breaking...)
	})
}

// repeated takes steps again and again, until they change nothing: one can make room for
// another.
func repeated(src []byte, steps ...step) ([]byte, error) {
	for range rounds {
		before := src
		for _, next := range steps {
			var err error
			if src, err = next(src); err == nil {
				src, err = format.Source(src)
			}
			if err != nil {
				return nil, err
			}
		}
		if bytes.Equal(before, src) {
			break
		}
	}
	return src, nil
}

// step is one pass over a file's text.
type step func([]byte) ([]byte, error)

// rounds is how often steps are repeated at most.
const rounds = 20
