package http

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

var (
	heading  = regexp.MustCompile("(?m)^### `([A-Z]+ [^`]+)`$")
	command  = regexp.MustCompile(`(?m)^curl .+$`)
	address  = regexp.MustCompile(`localhost:8080([^\s']*)`)
	sent     = regexp.MustCompile(` -d '([^']*)'`)
	verb     = regexp.MustCompile(` -X (\w+)`)
	sentHead = regexp.MustCompile(` -H '([^:']+): ([^']*)'`)
)

// TestDocs: docs/http.md has every route, and every command in it works.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := &observed{done: make(chan string, 1)}
	f := eventful()
	f.events = func(store.Cursor, agui.Dialect) (*agui.Reply, error) { return nil, nil }
	s := serve(t, f, func(c *Config) {
		c.Agents, c.UI, c.Metrics, c.Observer = twoAgents, says("page"), says("metrics"), seen
	})
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
		commands := command.FindAllString(text, -1)
		if r.method != "HEAD" && (!there || len(commands) == 0) {
			t.Errorf("%s has no section with a curl", name)
		}
		for _, c := range commands {
			if code, body := curl(t, s.URL, c); code >= 300 {
				t.Errorf("%s\n%d %s", c, code, body)
			}
			if got := <-seen.done; !strings.HasPrefix(got, name+" 2") {
				t.Errorf("%s\nis %s, not %s", c, got, name)
			}
		}
	}
	for name := range sections {
		t.Errorf("%s is described and does not exist", name)
	}
}

// curl does what the command would.
func curl(t *testing.T, server, command string) (int, string) {
	t.Helper()
	method, body := "GET", ""
	if m := sent.FindStringSubmatch(command); m != nil {
		method, body = "POST", m[1]
	}
	if m := verb.FindStringSubmatch(command); m != nil {
		method = m[1]
	}
	var header []string
	for _, m := range sentHead.FindAllStringSubmatch(command, -1) {
		header = append(header, m[1], m[2])
	}
	path := address.FindStringSubmatch(command)
	if path == nil {
		t.Fatalf("no address in %s", command)
	}
	res, answered := do(t, method, server+path[1], body, header...)
	return res.StatusCode, answered
}
