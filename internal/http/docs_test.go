package http

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var heading = regexp.MustCompile("(?m)^### `([A-Z]+ [^`]+)`$")

// TestDocs: docs/http.md has a section with a curl for every route, and none for what is
// no route. A test of internal/command runs the commands.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	at := heading.FindAllStringSubmatchIndex(string(page), -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections[string(page[m[2]:m[3]])] = string(page[m[1]:end])
	}
	for _, r := range allRoutes() {
		name := r.method + " " + r.path
		text, there := sections[name]
		delete(sections, name)
		if r.method != "HEAD" && (!there || !strings.Contains(text, "\ncurl ")) {
			t.Errorf("%s has no section with a curl", name)
		}
	}
	for name := range sections {
		t.Errorf("%s is described and does not exist", name)
	}
}

// namedRoute matches a route that a page names in its text.
var namedRoute = regexp.MustCompile("`(GET|HEAD|POST|PUT|PATCH|DELETE) (/[^`?\\s]*)")

// TestPagesNameRoutes: docs/http.md is the only list of routes; what other pages say of a
// route begins with a method and path of that list.
func TestPagesNameRoutes(t *testing.T) {
	known := map[string]bool{}
	for _, r := range allRoutes() {
		known[r.method+" "+r.path] = true
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range slices.Concat(pages, deeper, []string{"../../README.md", "../../CONTRIBUTING.md"}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedRoute.FindAllStringSubmatch(string(text), -1) {
			named++
			if !known[m[1]+" "+m[2]] {
				t.Errorf("%s names %s %s, which is not a route; write its parts as docs/http.md does", page, m[1], m[2])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a route")
	}
}
