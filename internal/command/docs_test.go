package command

import (
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSettingsAreDocumented: the tables of settings list every flag with its variable
// and its default, and nothing else.
func TestSettingsAreDocumented(t *testing.T) {
	for _, file := range []string{"../../docs/configuration.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string][2]string{}
		for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `([A-Z_]+)` \\| `?([^`|]*?)`? \\|").
			FindAllStringSubmatch(string(text), -1) {
			rows[m[1]] = [2]string{m[2], m[3]}
		}
		(&options{}).flags(io.Discard).VisitAll(func(f *flag.Flag) {
			row, ok := rows[f.Name]
			delete(rows, f.Name)
			want := f.DefValue
			if want == "" {
				want = "none"
			}
			switch {
			case f.Name == "version":
			case !ok:
				t.Errorf("%s does not have --%s", file, f.Name)
			case row != [2]string{variable(f.Name), want}:
				t.Errorf("%s has %v for --%s, want %s and %s", file, row, f.Name, variable(f.Name), want)
			}
		})
		for name := range rows {
			t.Errorf("%s has --%s, which is not a flag", file, name)
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
	flags := (&options{}).flags(io.Discard)
	for _, m := range regexp.MustCompile("`--([a-z-]+[a-z])[=` ]").FindAllStringSubmatch(string(text), -1) {
		if flags.Lookup(m[1]) == nil {
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
