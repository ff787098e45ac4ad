package holdfast_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProgramOnThePages: the code and the agents file on these pages are parts of the
// examples, which are compiled and run by their own tests.
func TestProgramOnThePages(t *testing.T) {
	var examples strings.Builder
	for _, pattern := range []string{"examples/*/*.go", "examples/*/*/*.go", "examples/program/*/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			examples.WriteString(blanks.ReplaceAllString(string(text), ""))
		}
	}
	block, onlyGo := regexp.MustCompile("(?ms)^```(?:go|yaml)\n(.*?)^```$"),
		regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	for _, page := range []string{"docs/dojo.md", "docs/embedding.md", "docs/extending.md", "docs/mcp.md",
		"docs/remote-agents.md", "docs/tools.md"} {
		blocks := block.FindAllStringSubmatch(readFile(t, page), -1)
		// Of the files on these pages internal/command has a test.
		if page == "docs/mcp.md" || page == "docs/tools.md" || page == "docs/remote-agents.md" {
			blocks = onlyGo.FindAllStringSubmatch(readFile(t, page), -1)
		}
		if len(blocks) == 0 {
			t.Errorf("%s has no code blocks", page)
		}
		for _, b := range blocks {
			if !strings.Contains(examples.String(), blanks.ReplaceAllString(b[1], "")) {
				t.Errorf("%s shows a block that no example has:\n%s", page, b[1])
			}
		}
	}
}
