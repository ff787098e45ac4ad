package server_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

var update = flag.Bool("update", false, "write what the agents file's mistakes are called now")

// TestMistakes: what people get wrong in an agents file is called what testdata/mistakes.txt says.
func TestMistakes(t *testing.T) {
	const golden = "testdata/mistakes.txt"
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	var now strings.Builder
	for _, c := range strings.Split(strings.TrimPrefix(string(text), "=== "), "\n=== ") {
		title, rest, _ := strings.Cut(c, "\n")
		file, want, _ := strings.Cut("\n"+rest+"\n", "\n---\n")
		file, want = strings.TrimPrefix(file, "\n"), strings.TrimRight(want, "\n")
		if err := os.WriteFile(path, []byte(file+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := server.ValidateAgents(path, server.Parts{Getenv: func(string) string { return "" }})
		if err == nil || !server.IsFileMistake(err) {
			t.Errorf("%s: no mistake was found: %v", title, err)
			continue
		}
		got := strings.ReplaceAll(err.Error(), path+":", "")
		if got != want && !*update {
			t.Errorf("%s: the mistakes are\n%s\nwant\n%s", title, got, want)
		}
		now.WriteString("=== " + title + "\n" + file + "\n---\n" + got + "\n")
	}
	if *update {
		if err := os.WriteFile(golden, []byte(now.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
