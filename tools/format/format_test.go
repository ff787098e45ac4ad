package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the files of testdata become")

// TestFormat: what is too wide is broken where a reader would break it, and what is
// formatted stays as it is.
func TestFormat(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile("testdata/packed.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := source(before, false)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/formatted.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/formatted.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(string(got)) {
		if width(strings.TrimSuffix(line, "\n")) > columns {
			t.Errorf("a line is too long: %s", line)
		}
	}
	if again, err := source(got, false); err != nil || !bytes.Equal(again, got) {
		t.Errorf("formatted again it is\n%s\n%v", again, err)
	}
}

// TestCases: tests keep their tables as they are.
func TestCases(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := source(src, true); err != nil || !bytes.Equal(got, src) {
		t.Errorf("got\n%s\n%v", got, err)
	}
}

// TestWide: tests are broken at the last column like all code, texts between words.
func TestWide(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile("testdata/wide.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := source(before, true)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/broken.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/broken.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := source(got, true); err != nil || !bytes.Equal(again, got) {
		t.Errorf("formatted again it is\n%s\n%v", again, err)
	}
}
