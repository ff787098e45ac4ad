package kinds_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/kinds"
)

var (
	yamlBlocks = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	goBlocks   = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	whitespace = regexp.MustCompile(`\s+`)
)

// TestPages: what the pages of docs/middleware show as YAML is an agent's middleware, and
// what they show as Go is in an example, which is compiled and run.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/middleware/*.md")
	if err != nil || len(pages) != 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	examples := read(t, "../example_*_test.go") + read(t, "../*/example_test.go")
	for _, name := range pages {
		page := read(t, name)
		yaml, code := yamlBlocks.FindAllStringSubmatch(page, -1), goBlocks.FindAllStringSubmatch(page, -1)
		if len(yaml) == 0 || len(code) == 0 {
			t.Errorf("%s has %d blocks of YAML and %d of Go", name, len(yaml), len(code))
		}
		for _, block := range yaml {
			agent := "agents:\n  - name: a\n    model: demo\n    " + strings.ReplaceAll(block[1], "\n", "\n    ")
			if _, err := config.Parse(name, []byte(agent), known(), noFiles); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, block[1])
			}
		}
		for _, block := range code {
			if !strings.Contains(without(examples), without(block[1])) {
				t.Errorf("%s shows what no example has:\n%s", name, block[1])
			}
		}
	}
}

func known() config.Known {
	return config.Known{
		Models: []string{"demo"}, Middleware: kinds.All(), Priced: []string{"budget"},
		Price: func(raw json.RawMessage) error { return holdfast.DecodeOptions(raw, &budget.Price{}) },
	}
}

func noFiles(string) ([]byte, error) { return nil, fs.ErrNotExist }

func without(text string) string { return whitespace.ReplaceAllString(text, "") }

// read returns the files that match a pattern, of which there has to be one.
func read(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
