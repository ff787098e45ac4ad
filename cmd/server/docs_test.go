package main

import (
	"flag"
	"io"
	"os"
	"regexp"
	"testing"
)

// TestSettingsAreDocumented: the tables of settings list every flag with its variable
// and its default, and nothing else.
func TestSettingsAreDocumented(t *testing.T) {
	for _, file := range []string{"../../docs/configuration.md", "../../README.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string][2]string{}
		for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `([A-Z_]+)` \\| `?([^`|]*?)`? \\|").FindAllStringSubmatch(string(text), -1) {
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
