package config_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/config"
)

// TestSums: a part of the file has another sum exactly if it says something else. None has
// what it says.
func TestSums(t *testing.T) {
	const text = `
prices: {demo: {input: 1, output: 1}}
limits: {perUser: {runs: 3}}
agents:
  - name: one
    model: demo
    tools: [wait]
  - name: two
    model: demo
    instructionsFile: two.md
`
	read := func(text, words string) config.Sums {
		t.Helper()
		f, err := config.Parse("f.yaml", []byte(text), known(), func(path string) ([]byte, error) {
			if path != "two.md" {
				return nil, os.ErrNotExist
			}
			return []byte(words), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return f.Sums
	}
	before := read(text, "Be kind.")
	for name, c := range map[string]struct {
		text, words    string
		agents, others []string
	}{
		"nothing": {text, "Be kind.", nil, nil},
		"comments, quotes": {strings.NewReplacer("demo\n", "\"demo\" # as ever\n", "[wait]", "\n    - wait").
			Replace(text),
			"Be kind.", nil, nil},
		"a tool":       {strings.Replace(text, "    tools: [wait]\n", "", 1), "Be kind.", []string{"one"}, nil},
		"instructions": {text, "Be brief.", []string{"two"}, []string{"two.md"}},
		"limits, prices": {strings.NewReplacer("runs: 3", "runs: 4", "input: 1", "input: 2").Replace(text),
			"Be kind.", nil, []string{"limits", "prices"}},
	} {
		after := read(c.text, c.words)
		differ := func(x, y map[string]string) (names []string) {
			for _, name := range slices.Sorted(maps.Keys(x)) {
				if x[name] != y[name] {
					names = append(names, name)
				}
				if len(x[name]) != 64 {
					t.Errorf("the sum of %s is %q", name, x[name])
				}
			}
			return names
		}
		if agents, others := differ(before.Agents, after.Agents),
			differ(before.Others, after.Others); !slices.Equal(agents, c.agents) || !slices.Equal(others, c.others) {
			t.Errorf("%s: %q and %q have changed", name, agents, others)
		}
	}
}
