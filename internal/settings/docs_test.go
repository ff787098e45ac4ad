package settings

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var writePages = flag.Bool("write-pages", false, "write the settings into the pages that have them")

// TestPages: the pages say of the settings what the table says.
func TestPages(t *testing.T) {
	for _, page := range []struct{ file, from, to, want string }{
		{"docs/configuration.md", "<!-- the settings -->\n", "<!-- end of the settings -->\n", tables()},
		{"holdfast.example.yaml", "#\n# settings:\n", "# end of the settings\n", keys()},
		{
			"internal/config/holdfast.schema.json",
			"\"description\": \"Settings of the server; flags and variables take precedence.\",\n" +
				"      \"type\": \"object\",\n      \"properties\": {\n",
			"      },\n",
			members(t),
		},
	} {
		file := filepath.Join("../..", page.file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, begins := strings.Cut(string(text), page.from)
		is, after, ends := strings.Cut(rest, page.to)
		switch {
		case !begins || !ends:
			t.Errorf("%s has no settings between %q and %q", page.file, page.from, page.to)
		case is == page.want:
		case *writePages:
			all := before + page.from + page.want + page.to + after
			if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s has other settings than the table: go test ./internal/settings -write-pages writes them",
				page.file)
		}
	}
}

// tables are the settings as a page has them, with a table for each group.
func tables() string {
	var b strings.Builder
	code := func(text string) string {
		if text == "" {
			return "none"
		}
		return "`" + text + "`"
	}
	for _, g := range defaults(env(nil)).groups {
		header := "flag"
		if g.inFile {
			header = "flag, key of the file"
		}
		fmt.Fprintf(&b, "\n### %s: %s\n\n| %s | variable | default | |\n|---|---|---|---|\n", g.name, g.text, header)
		for _, row := range g.settings {
			var names []string
			if !row.noFlag {
				names = append(names, code("--"+row.name))
			}
			if g.inFile {
				names = append(names, code(row.key()))
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(names, ", "), code(row.variable()),
				code(row.into.show()), row.text)
		}
	}
	b.WriteString("\n### Variables only\n\nSecrets, and where models are.\n\n| variable | |\n|---|---|\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| %s | %s |\n", code(v.name), v.text)
	}
	return b.String() + "\n"
}

// keys are the settings that a file may have, with their defaults, as comments.
func keys() string {
	var b strings.Builder
	for _, g := range defaults(env(nil)).groups {
		for _, row := range g.settings {
			if g.inFile {
				fmt.Fprintf(&b, "#   %s: %s\n", row.key(), row.into.show())
			}
		}
	}
	return b.String()
}

// TestHelp: the whole help has every setting, and the short one ten of them. Lines fit a
// terminal.
func TestHelp(t *testing.T) {
	all, often := Help(), Often()
	for _, row := range defaults(env(nil)).all() {
		if !strings.Contains(all, "\n  "+row.shownName()) {
			t.Errorf("the help does not have %s", row.name)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^  --`).FindAllString(often, -1)); n != 10 {
		t.Errorf("the short help has %d settings", n)
	}
	for line := range strings.Lines(all + often) {
		if len(strings.TrimRight(line, "\n")) > helpColumns || strings.ContainsAny(line, "`[") {
			t.Errorf("this line of the help is too long, or Markdown: %s", line)
		}
	}
}

// TestDurabilityPage: every flag that docs/durability.md mentions exists, and those that
// it is about have a section.
func TestDurabilityPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/durability.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, row := range defaults(env(nil)).all() {
		flags[row.name] = !row.noFlag
	}
	for _, m := range regexp.MustCompile("`--([a-z-]+[a-z])[=` ]").FindAllStringSubmatch(string(text), -1) {
		if !flags[m[1]] {
			t.Errorf("docs/durability.md mentions --%s, which is not a flag", m[1])
		}
	}
	headings := strings.Join(regexp.MustCompile("(?m)^### .*$").FindAllString(string(text), -1), "\n")
	for _, name := range []string{
		"checkpoint-frequency", "pending-writes", "retention", "recover", "on-store-failure", "store-timeout",
		"durability", "lease", "on-revision", "pin-timeout", "delta-window", "archive-after",
	} {
		if !strings.Contains(headings, "`--"+name+"`") {
			t.Errorf("docs/durability.md has no section about --%s", name)
		}
	}
}

// members are the settings as the schema of the file has them.
func members(t *testing.T) string {
	var lines []string
	for _, g := range defaults(env(nil)).groups {
		for _, row := range g.settings {
			if !g.inFile {
				continue
			}
			var line strings.Builder
			encoder := json.NewEncoder(&line)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(row.text); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("        %q: { \"description\": %s, \"type\": %s }", row.key(),
				strings.TrimSpace(line.String()), `["string", "number", "boolean"]`))
		}
	}
	return strings.Join(lines, ",\n") + "\n"
}
