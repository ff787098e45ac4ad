package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// link matches the address of a Markdown link, or of a runbook on the project's site.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)|blob/main/(\S+\.md\S*)`)
	// codeBlock matches a fenced block, which holds no links.
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	// notInAnchor is what GitHub leaves out of a heading's anchor.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	// conflict matches the beginning of a side of a merge that nobody has resolved.
	conflict = regexp.MustCompile(`(?m)^(<{7}|>{7}) `)
)

// TestLinks: every link between the project's pages, and from the alerts to the runbook,
// leads to a file that exists and to a heading in it.
func TestLinks(t *testing.T) {
	checked := 0
	for _, page := range linking(t) {
		for _, m := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(read(t, page), ""), -1) {
			to, from := m[1], filepath.Dir(page)
			if m[2] != "" {
				to, from = m[2], root
			}
			if strings.Contains(to, "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(to, "#")
			target := filepath.Join(from, file)
			if file == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, to, err)
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s: there is no such heading", page, to)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// TestMerged: no page has what a merge leaves where two branches differ.
func TestMerged(t *testing.T) {
	for _, page := range linking(t) {
		if found := conflict.FindString(read(t, page)); found != "" {
			t.Errorf("%s has a line that begins with %s: keep one of the two sides, or both", page, found)
		}
	}
}

// linking returns the project's pages and the other files that link to them.
func linking(t *testing.T) []string {
	t.Helper()
	pages := []string{
		filepath.Join(root, "README.md"),
		filepath.Join(root, "CONTRIBUTING.md"),
		filepath.Join(root, "CHANGELOG.md"),
		filepath.Join(root, "SECURITY.md"),
		filepath.Join(root, "deploy", "alerts.yml"),
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		text := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(text, " ", "-")] = true
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
