package kinds_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/middleware/kinds"
)

// TestAll: a file can name every built-in middleware, with options as its page shows
// them. Unknown options are refused.
func TestAll(t *testing.T) {
	t.Parallel()
	options := map[string]string{
		"circuitBreaker": `{"maxIdenticalCalls": 4, "then": "tell", "tools": {"poll": 0}}`,
		"errorTracking":  `{"maxFailingIterations": 5}`,
		"continuation":   `{"maxIterations": 10, "maxTotal": 100, "remember": "run"}`,
		"toolPermission": `{"rules": [{"tool": "refund*", "args": {"amount": {"above": 10.5}}, "then": ` +
			`"ask"}], "default": "allow"}`,
		"rateLimit": `{"per": ["user"], "limit": 60, "window": "1m", "then": "tell"}`,
		"budget": `{"thread": {"cost": 10.50, "tokens": 100000}, "tenant": {"cost": "500", "window": "24h"}, ` +
			`"prices": {"openai/*": {"input": 0.25, "output": 2}}, "then": "ask"}`,
		"retry":         `{"tools": ["fetch*"], "attempts": 2, "backoff": "1s"}`,
		"timeout":       `{"tool": "20s"}`,
		"historyWindow": `{"maxMessages": 40, "then": "summarise", "onOverflow": "fail"}`,
		"largeResults":  `{"maxBytes": 20000}`,
		"redaction":     `{"patterns": [{"name": "badge", "regexp": "badge-[0-9]+"}]}`,
	}
	names, noticed := map[string]bool{}, []string{}
	for _, kind := range kinds.All() {
		raw, ok := options[kind.Name]
		delete(options, kind.Name)
		if !ok {
			t.Errorf("%s is not tried, or is listed twice", kind.Name)
			continue
		}
		m, err := kind.New(json.RawMessage(raw))
		if err != nil || !strings.HasPrefix(m.Name, "holdfast.") || names[m.Name] {
			t.Errorf("%s: %q, %v", kind.Name, m.Name, err)
		}
		names[m.Name] = true
		noticed = append(noticed, m.Notices...)
		if _, err := kind.New(json.RawMessage(`{"colour": "red"}`)); err == nil ||
			!strings.Contains(err.Error(), `unknown field "colour"`) {
			t.Errorf("%s: an option that is not there: %v", kind.Name, err)
		}
	}
	for name := range options {
		t.Errorf("there is no kind %s", name)
	}
	slices.Sort(noticed)
	if all := notices(t); !slices.Equal(noticed, all) {
		t.Errorf("the kinds list the notices %q; there are %q", noticed, all)
	}
}

// notices returns the values of the constants Notice… of the built-in middleware, sorted.
func notices(t *testing.T) []string {
	t.Helper()
	constant := regexp.MustCompile(`(?m)^(?:const |\t)Notice[A-Za-z]+ += "([^"]+)"`)
	var all []string
	for _, pattern := range []string{"../*.go", "../*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range constant.FindAllSubmatch(text, -1) {
				all = append(all, string(found[1]))
			}
		}
	}
	slices.Sort(all)
	if len(all) < 10 {
		t.Fatalf("only %q were found", all)
	}
	return all
}

// TestInvalidOptions: in a file, they are an error.
func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{
		"circuitBreaker": `{"maxIdenticalCalls": -1}`,
		"rateLimit":      `{"limit": 1, "window": "soon"}`,
	}
	for _, k := range kinds.All() {
		options, ok := wrong[k.Name]
		if !ok {
			continue
		}
		delete(wrong, k.Name)
		if _, err := k.New([]byte(options)); err == nil ||
			!strings.Contains(err.Error(), "maxIdenticalCalls") &&
				!strings.Contains(err.Error(), `"soon" is not a duration`) {
			t.Errorf("%s: got %v", k.Name, err)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("there are no kinds for %v", wrong)
	}
}
