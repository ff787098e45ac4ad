package http

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var heading = regexp.MustCompile("(?m)^### `([A-Z]+ [^`]+)`$")

// TestDocs: docs/http.md has a section with a curl for every route, and none for what is
// no route. A test of cmd/server runs the commands.
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
	for _, r := range routes {
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
