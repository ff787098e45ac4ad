package config_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/middleware/kinds"
	"go.yaml.in/yaml/v4"
)

// compiled is the schema as an editor has it.
func compiled(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(config.Schema())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON returns the text of a YAML file as JSON; false if it is not YAML.
func asJSON(t *testing.T, text string) (map[string]any, json.RawMessage, bool) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, nil, false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, nil, false
	}
	members, _ := value.(map[string]any)
	return members, raw, true
}

// TestSchemaFitsExample: the example fits the schema, and so it does with what is commented out
// in it.
func TestSchemaFitsExample(t *testing.T) {
	text, err := os.ReadFile("../../holdfast.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, declared, found := strings.Cut(string(text), "#\n# mcpServers:")
	if !found || !strings.Contains(before, "yaml-language-server: $schema=") {
		t.Error("the example does not name the schema, or has no MCP servers")
	}
	all := before + "\n" + regexp.MustCompile(`(?m)^# ?`).ReplaceAllString("# mcpServers:"+declared, "")
	for _, text := range []string{string(text), all} {
		_, raw, _ := asJSON(t, text)
		if err := compiled(t).Validate(t.Context(), raw); err != nil {
			t.Error(err)
		}
	}
}

var blocks = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestSchemaFitsPages: each block of an agents file on the pages fits the schema.
func TestSchemaFitsPages(t *testing.T) {
	s, n := compiled(t), 0
	check := func(path string) {
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			members, raw, ok := asJSON(t, block[1])
			switch {
			case !ok:
				t.Errorf("%s: this is not YAML:\n%s", path, block[1])
				continue
			case members["middleware"] != nil: // a part of an agent
				members["name"] = "a"
				raw, _ = json.Marshal(map[string]any{"agents": []any{members}})
			case members["agents"] == nil:
				continue // of another program
			}
			n++
			if err := s.Validate(t.Context(), raw); err != nil {
				t.Errorf("%s: %v\n%s", path, err, block[1])
			}
		}
	}
	err := filepath.WalkDir("../../docs", func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if check("../../README.md"); n < 25 {
		t.Errorf("only %d blocks were found", n)
	}
}

// TestSchemaAgrees: the schema takes files without mistakes, and refuses those with some, unless
// all of them are about what a schema cannot say.
func TestSchemaAgrees(t *testing.T) {
	beyond := []string{"documents.yaml", "toollist.yaml", "toolnames.yaml"}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	s := compiled(t)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		_, raw, ok := asJSON(t, string(text))
		if !ok {
			continue
		}
		_, mistakes := config.Load(file, known())
		err = s.Validate(t.Context(), raw)
		if want := mistakes != nil && !slices.Contains(beyond, filepath.Base(file)); (err != nil) != want {
			t.Errorf("%s: the mistakes are\n%v\nand the schema says %v", file, mistakes, err)
		}
	}
}

// TestSchemaNamesMiddleware: editors complete the built-in middleware.
func TestSchemaNamesMiddleware(t *testing.T) {
	var s struct {
		Defs struct {
			Middleware struct {
				AnyOf []struct {
					Enum       []string       `json:"enum"`
					Properties map[string]any `json:"properties"`
				} `json:"anyOf"`
			} `json:"middleware"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	list := s.Defs.Middleware.AnyOf
	for _, kind := range kinds.All() {
		if !slices.Contains(list[0].Enum, kind.Name) || list[2].Properties[kind.Name] == nil {
			t.Errorf("the schema does not know %s", kind.Name)
		}
	}
	if n := len(kinds.All()); len(list[0].Enum) != n || len(list[2].Properties) != n {
		t.Errorf("the schema knows %v, and there are %d kinds", list[0].Enum, n)
	}
}
