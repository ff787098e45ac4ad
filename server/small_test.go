package server_test

import (
	"os"
	"strings"
	"testing"
)

// TestSmallProgram: a program with a model, a tool, keys and the page has at most 40 lines.
func TestSmallProgram(t *testing.T) {
	text := string(must(os.ReadFile("../examples/program/small/main.go"))(t))
	for _, part := range []string{"responses.New(", "holdfast.NewTool(", "keys.Authenticate", "web.Handler()"} {
		if !strings.Contains(text, part) {
			t.Errorf("the program has no %s", part)
		}
	}
	if n := strings.Count(text, "\n"); n > 40 {
		t.Errorf("the program has %d lines", n)
	}
}
