package archtest

// Every fenced block of the project's pages has a language, and a test that runs it or
// compares it with code that runs. A block of a kind that is not listed here fails.

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proofs says which test runs the blocks of which pages. Of the rows that match a block
// the first counts. Without a test, why says what else makes sure that it is right.
var proofs = []struct {
	page, language string
	test           string
	why            string
}{
	{page: "docs/http.md", language: "sh json", test: "internal/command.TestHTTPPage"},
	{page: "docs/tools.md", language: "sh", test: "internal/command.TestToolsPage"},
	{page: "docs/tools.md", language: "console", test: "internal/e2e.TestToolsExample"},
	{page: "docs/tools.md", language: "json", why: "what a webhook gets; TestDelivery in package webhook has it"},
	{page: "docs/middleware.md", language: "go text json yaml", test: "holdfast.TestDocumentedCode"},
	{page: "docs/models.md", language: "go", test: "holdfast.TestDocumentedCode"},
	{page: "docs/checkpointing.md", language: "go text json yaml", test: "holdfast.TestDocumentedCode"},
	{page: "docs/state-evolution.md", language: "go text json yaml", test: "holdfast.TestDocumentedCode"},
	{page: "docs/prompt-cache.md", language: "go", test: "holdfast.TestDocumentedCode"},
	{page: "docs/shared-state.md", language: "go", test: "holdfast.TestSharedStatePage"},
	{page: "docs/shared-state.md", language: "json",
		why: "an event; TestPageStateIsMerged in internal/loop reads such"},
	{page: "docs/shared-state.md", language: "yaml", test: "internal/command.TestFileOnThePage"},
	{page: "docs/middleware/*.md", language: "go yaml", test: "middleware/kinds.TestPages"},
	{
		page:     "docs/middleware/*.md",
		language: "json text",
		why:      "notices, questions and texts for models; the middleware's own tests have them",
	},
	{page: "docs/dojo.md", language: "go", test: "holdfast.TestProgramOnThePages"},
	{page: "docs/dojo.md", language: "tsx", why: "examples/dojo has it in a page that make dojo drives in a browser"},
	{page: "docs/embedding.md", language: "go", test: "holdfast.TestProgramOnThePages"},
	{page: "docs/extending.md", language: "go yaml", test: "holdfast.TestProgramOnThePages"},
	{page: "docs/tools.md", language: "go", test: "holdfast.TestProgramOnThePages"},
	{page: "docs/mcp.md", language: "go", test: "holdfast.TestProgramOnThePages"},
	{page: "docs/mcp.md", language: "yaml", test: "internal/command.TestFileOnThePage"},
	{page: "docs/remote-agents.md", language: "go", test: "holdfast.TestProgramOnThePages"},
	{page: "docs/remote-agents.md", language: "yaml", test: "internal/command.TestFileOnThePage"},
	{page: "docs/tools.md", language: "yaml", test: "internal/command.TestFileOnThePage"},
	{page: "docs/configuration.md", language: "yaml", test: "internal/command.TestFileOnThePage"},
	{page: "docs/security.md", language: "go yaml text", test: "server.TestSecurityPage"},
	{page: "docs/operations.md", language: "nginx haproxy", test: "internal/command.TestBalancersOnThePage"},
	{page: "docs/operations.md", language: "yaml", test: "internal/command.TestEnvoyOnThePage"},
	{page: "docs/operations.md", language: "text", test: "internal/command.TestReloadOnThePage"},
	{page: "docs/metrics.md", language: "yaml promql", test: "internal/metrics.TestRulesOnThePage"},
	{
		page:     "docs/frontends.md",
		language: "js",
		why:      "clients/js/test/pages.test.mjs runs them with Node, in make clients",
	},
	{
		page:     "docs/frontends.md",
		language: "sh",
		why: "examples/browser/firstpage.mjs runs the five commands, in make first-page; " +
			"clients/js/test/pages.test.mjs runs curl, in make clients",
	},
	{
		page:     "docs/frontends.md",
		language: "tsx",
		why: "examples/assistant-ui builds and drives its page as it stands; examples/copilotkit has the other " +
			"in a page that is driven in a browser",
	},
	{
		page:     "docs/frontends.md",
		language: "ts",
		why:      "CopilotKit's runtime has a hundred dependencies, which are not installed here",
	},
	{
		page:     "docs/resumable.md",
		language: "sh",
		why:      "clients/js/test/resumable.test.mjs runs the script with these options, in make clients",
	},
	{
		page:     "docs/protocol.md",
		language: "json",
		why: "the forms of an error and of an image, without the words and the data of one; " +
			"TestErrorsMatchTheDocument in internal/http has the one, TestImagesAreActivities in internal/loop the " +
			"other; of cursors in events, which TestCursorsInEvents in internal/http has; and of their capability, " +
			"which the golden info of CopilotKit in internal/http/testdata has",
	},
	{
		page:     "docs/copilotkit.md",
		language: "tsx",
		why:      "examples/copilotkit has it in a page that is driven in a browser",
	},
	{
		page:     "docs/state-checks.md",
		language: "go",
		why: "right and wrong code side by side, which does not compile; " +
			"cmd/holdfastvet/internal/statecheck/testdata has it in full",
	},
	{
		page:     "docs/architecture.md",
		language: "text",
		why:      "a drawing, and a list of packages that TestPages compares with the code",
	},
	{page: "*", language: "console", test: "internal/command.TestConsoleBlocks"},
	{page: "docs/*", language: "console", test: "internal/command.TestConsoleBlocks"},
}

// fenced matches a block with what follows the fence.
var fenced = regexp.MustCompile("(?ms)^( *)```([^\n]*)\n(.*?)^ *```$")

// TestBlocks: every block on the pages is of a known kind and is well formed, and the
// test that runs it exists. The list has no rows for blocks that are gone.
func TestBlocks(t *testing.T) {
	t.Parallel()
	used := make([]bool, len(proofs))
	for _, page := range pagesWithBlocks(t) {
		for _, block := range fenced.FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1) {
			language, text := block[2], block[3]
			proof := proofOf(page, language)
			if proof < 0 {
				t.Errorf("%s has a block of the kind %q that no test runs: write the test, or say in "+
					"proofs why there is none:\n%s", page, language, text)
				continue
			}
			used[proof] = true
			if err := wellFormed(language, text); err != nil {
				t.Errorf("%s: %v in the %s block\n%s", page, err, language, text)
			}
		}
	}
	for i, p := range proofs {
		switch {
		case !used[i] && p.page != "*":
			t.Errorf("%s has no block in %s", p.page, p.language)
		case (p.test == "") == (p.why == ""):
			t.Errorf("%s, %s: either a test or a reason", p.page, p.language)
		case p.test != "" && !found(t, root, p.test):
			t.Errorf("%s, %s: there is no %s", p.page, p.language, p.test)
		}
	}
}

// pagesWithBlocks returns every page, as a path from the root.
func pagesWithBlocks(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, filepath.ToSlash(rel))
		}
	}
	if len(pages) < 20 {
		t.Errorf("only %d pages were found", len(pages))
	}
	return pages
}

// proofOf returns the index of the row for a block, or -1.
func proofOf(page, language string) int {
	for i, p := range proofs {
		if ok, _ := path.Match(p.page, page); !ok {
			continue
		}
		for _, l := range strings.Fields(p.language) {
			if l == language {
				return i
			}
		}
	}
	return -1
}

// wellFormed checks what can be checked of any block in the language.
func wellFormed(language, text string) error {
	switch language {
	case "json":
		// Several values may follow each other, like the events of a stream.
		for d := json.NewDecoder(strings.NewReader(text)); ; {
			if err := d.Decode(new(any)); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	case "go":
		return parseGo(text)
	case "sh":
		cmd := exec.Command("bash", "-n")
		cmd.Stdin = strings.NewReader(text)
		return cmd.Run()
	}
	return nil
}

// parseGo parses a part of a program: a file, declarations, statements, or what is in
// braces. A line with just "…" stands for what was left out.
func parseGo(text string) error {
	text = strings.ReplaceAll(text, "\n…\n", "\n")
	var err error
	for _, form := range []string{
		text, "package p\n" + text, "package p\nfunc f() {\n" + text + "\n}", "package p\nvar l = []any{\n" + text +
			"\n}", "package p\ntype t struct {\n" + text + "\n}",
	} {
		if _, err = parser.ParseFile(token.NewFileSet(), "", form, parser.SkipObjectResolution); err == nil {
			return nil
		}
	}
	return err
}
