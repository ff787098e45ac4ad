package config_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/kinds"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

func known() config.Known {
	return config.Known{
		Tools: []string{
			"current_time",
			"calculate",
			"wait",
			"lookup",
			"ask_person",
			"update_plan",
			"request_approval",
			"carry_out",
		},
		Models: []string{"demo", "openai/"},
		Middleware: []holdfast.MiddlewareKind{
			{
				Name: "acme.breaker",
				New:  func(raw json.RawMessage) (holdfast.Middleware, error) { return acme(raw, &breaker{}) },
			},
			{
				Name: "acme.budget",
				New:  func(raw json.RawMessage) (holdfast.Middleware, error) { return acme(raw, &spending{}) },
			},
		},
		Declared: declared,
		Priced:   []string{"acme.budget"},
		Price:    func(raw json.RawMessage) error { return holdfast.DecodeOptions(raw, &budget.Price{}) },
	}
}

// declared stands for those who know the options.
func declared(d *config.Declaration) ([]string, error) {
	var o map[string]any
	if err := d.Decode(&o, nil); err != nil {
		return nil, err
	}
	var errs []error
	for _, key := range []string{"url", "server"} {
		if url, ok := o[key].(string); ok && !strings.Contains(url, "://") && !strings.Contains(url, "${") {
			errs = append(errs, fmt.Errorf("%s: it must be absolute", key))
		}
	}
	if d.Kind == config.KindMCP && o["url"] == nil && o["command"] == nil {
		errs = append(errs, errors.New("command: set command or url"), errors.New("the field Timeout is missing"))
	}
	if len(errs) > 0 {
		return nil, d.Located(errors.Join(errs...), "")
	}
	prefix, _ := o["prefix"].(string)
	switch operations, _ := o["operations"].([]any); d.Kind {
	case config.KindFiles:
		return []string{prefix + "list_files", prefix + "read_file"}, nil
	case config.KindFetch:
		return []string{"http_get"}, nil
	case config.KindOpenAPI:
		var names []string
		for i, op := range operations {
			o := op.(map[string]any)
			name, _ := o["name"].(string)
			operation, there := o["operation"].(string)
			if !there {
				return nil, d.Located(fmt.Errorf("operations[%d] (): name: there is no operation", i), "")
			}
			names = append(names, prefix+cmp.Or(name, operation))
		}
		return names, nil
	}
	return []string{d.Name}, nil
}

// noFiles is for configurations that name no instructions file.
func noFiles(path string) ([]byte, error) { return nil, fs.ErrNotExist }

// TestMistakes: next to each file in testdata is the complete list of its mistakes, as
// a person would see it.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := "ok"
			_, err := config.Load(file, known())
			if err != nil {
				got = err.Error()
			}
			got = strings.ReplaceAll(got, filepath.ToSlash("testdata/"), "") + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if strings.Contains(strings.ToLower(got), "secret-") || strings.Contains(got, "verysecret") ||
				strings.Contains(got, "me:secret") {
				t.Errorf("a secret is shown:\n%s", got)
			}
		})
	}
}

// limits are like those of the server.
type limits struct {
	MaxIterations, ModelTries, MaxAnswer, MaxCalls, MaxArguments, MaxMedia, MaxToolResult int
	ModelTimeout, ModelIdleTimeout, ToolTimeout                                           time.Duration
}

// asked is how a model is asked, like the server's ModelSpec.
type asked struct {
	BaseURL, Proxy, APIKeyEnv string
	Headers                   map[string]string
	Params                    map[string]any
	Timeout, IdleTimeout      time.Duration
}

// named is an environment in which each variable has its name.
func named(name string) string { return name }

func limitsOf(t *testing.T, a config.Agent) (l limits) {
	t.Helper()
	if err := holdfast.DecodeOptions(a.Limits, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func askedOf(t *testing.T, m config.Model) (spec asked) {
	t.Helper()
	if err := m.Decode(&spec, named); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestLoad(t *testing.T) {
	f, err := config.Load("testdata/good.yaml", known())
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "testdata/good.yaml" || len(f.Agents) != 4 {
		t.Fatalf("%+v", f)
	}
	want := limits{
		MaxIterations:    20,
		ModelTries:       5,
		ModelTimeout:     2 * time.Minute,
		ModelIdleTimeout: 30 * time.Second,
		MaxAnswer:        2 << 20,
		MaxCalls:         12,
		MaxArguments:     64 << 10,
		MaxMedia:         4 << 20,
		ToolTimeout:      90 * time.Minute,
		MaxToolResult:    256 << 10,
	}
	a := f.Agents[0]
	if a.Name != "support" || a.Line != 2 || a.Description != "Answers customers." || len(a.Models) != 1 ||
		a.Models[0].Name != "openai/gpt-5-mini" || askedOf(t, a.Models[0]).BaseURL != "http://localhost:11434/v1" ||
		askedOf(t, a.Models[0]).APIKeyEnv != "SUPPORT_KEY" || a.Instructions != "You are support.\n" ||
		a.InstructionsFile != filepath.Join("testdata", "support.md") || limitsOf(t, a) != want ||
		!reflect.DeepEqual(a.ToolNames, []string{"lookup", "calculate"}) ||
		a.Client != (holdfast.ClientPolicy{Import: "users", Instructions: "user", Context: "drop", MediaURLs: "none",
			MediaFiles: true}) || !a.HideToolErrors ||
		a.Policy != (holdfast.Policy{Chat: true, OnBusy: "cancel_and_run", OnInterrupted: "decline",
			OnUnfinished: "abandon"}) {
		t.Errorf("%+v", a)
	}
	if o := a.Output; o == nil || o.Name != "reply" || o.Description != "What support says." ||
		string(o.Schema) != `{"type":"object","properties":{"text":{"type":"string","maxLength":500},`+
			`"again":{"type":"boolean"}},`+
			`"required":["text","again"]}` {
		t.Errorf("%+v", o)
	}
	if o := f.Agents[3].Output; o == nil || o.Name != "answer" ||
		!strings.HasPrefix(string(o.Schema), `{"type": "object", "properties": {"z"`) || f.Agents[1].Output != nil {
		t.Errorf("%+v", o)
	}
	if s := f.Agents[3].State; s == nil || s.Show != "paths" ||
		!slices.Equal(s.Paths, []string{"/recipe/title", ""}) || s.At != "end" || s.MaxBytes != 32<<10 ||
		!slices.Equal(s.Predict, []sharedstate.Prediction{{Tool: "write", Argument: "text", Path: "/recipe/text"}}) ||
		a.State != nil {
		t.Errorf("%+v", s)
	}
	params, err := json.Marshal(askedOf(t, a.Models[0]).Params)
	if want := `{"deep":{"on":true},"seed":7,"stop":["a","b"],"temperature":0.2,"user":null}`; err != nil ||
		string(params) != want {
		t.Errorf("params %s, %v", params, err)
	}
	if b := f.Agents[1]; b.Models[0].Name != "demo" || b.Instructions != "Be short.\nBe kind.\n" ||
		limitsOf(t, b) != want || b.Line != 24 || b.Client != (holdfast.ClientPolicy{}) || b.HideToolErrors {
		t.Errorf("%+v", b)
	}
	if c := f.Agents[2]; c.Name != "bare" || len(c.Models) != 1 || c.Models[0].Name != "" ||
		askedOf(t, c.Models[0]).Params != nil || c.Limits != nil || c.Approvals != "approver" ||
		c.OnRevision != "pin" || f.Agents[0].Approvals != "" {
		t.Errorf("%+v", c)
	}
}

// TestErrorf: mistakes that the caller finds have a place in the file too.
func TestErrorf(t *testing.T) {
	f, err := config.Load("testdata/good.yaml", known())
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[string]error{
		"testdata/good.yaml:6:5: SUPPORT_KEY is not set": f.Agents[0].Models[0].Errorf("apiKeyEnv", "%s is not set",
			"SUPPORT_KEY"),
		"testdata/good.yaml:30:5: no default model": f.Agents[2].Models[0].Errorf("name", "no default model"),
	} {
		if got.Error() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLoadUnreadable(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "holdfast.yaml"), known())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := config.Load(t.TempDir(), known()); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory: %v", err)
	}
}

func TestParseBounds(t *testing.T) {
	instructions := func(data []byte, err error) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return data, err }
	}
	byFile := "agents:\n  - name: a\n    instructionsFile: a.md\n"
	for _, tt := range []struct {
		name string
		data string
		read func(string) ([]byte, error)
		want string
	}{
		{"large", "#" + strings.Repeat("x", config.MaxSize), noFiles, "c.yaml:1:1: the file is larger than 1 MiB"},
		{"deep", "agents: " + strings.Repeat("[", 60) + strings.Repeat("]", 60), noFiles, "nested more than"},
		{"very deep", "agents: " + strings.Repeat("[", 20000), noFiles, "this is not YAML"},
		{"long texts", "agents: [&a \"" + strings.Repeat("x", 100_000) + "\"" + strings.Repeat(", *a", 1000) + "]",
			noFiles, "use fewer aliases"},
		{"NUL", "agents:\n  - name: a\n    description: \"a\\0b\"\n", noFiles,
			"c.yaml:3:18: description has a NUL character"},
		{"control character", "agents: \x01", noFiles, "this is not YAML"},
		{"large instructions", byFile, instructions(make([]byte, config.MaxSize+1), nil),
			`c.yaml:3:23: the file "a.md" is larger than 1 MiB`},
		{"binary instructions", byFile, instructions([]byte{0xff, 0xfe}, nil), "is not UTF-8 text"},
		{"blank instructions", byFile, instructions([]byte(" \n"), nil), "is empty"},
		{"unreadable instructions", byFile, instructions(nil, errors.New("permission denied")), "permission denied"},
		{"no instructions", byFile, noFiles, `there is no file "a.md"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("c.yaml", []byte(tt.data), known(), tt.read)
			var mistakes *config.Error
			if !errors.As(err, &mistakes) || len(mistakes.Mistakes) != 1 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want %q, got %v", tt.want, err)
			}
		})
	}
}

// TestManyMistakes: a file that is something else entirely does not fill the screen;
// the last line says how many more mistakes there are.
func TestManyMistakes(t *testing.T) {
	var data bytes.Buffer
	for i := range 70 {
		fmt.Fprintf(&data, "key%d: x\n", i)
	}
	_, err := config.Parse("c.yaml", data.Bytes(), known(), noFiles)
	if err == nil {
		t.Fatal("no mistakes")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || lines[50] != "c.yaml: and 21 more mistakes" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestExampleFile: the file that people copy works, and shows every key.
func TestExampleFile(t *testing.T) {
	const path = "../../holdfast.example.yaml"
	k := known()
	k.Middleware, k.Priced, k.Models = kinds.All(), []string{"budget"}, []string{"demo", "responses/"}
	f, err := config.Load(path, k)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Agents) < 2 || f.Agents[0].Models[0].Name != "demo" {
		t.Errorf("the example's first agent must run without a key: %+v", f.Agents)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"name", "description", "model", "models", "timeout", "idleTimeout", "refusal",
		"baseURL", "apiKeyEnv", "headers", "params", "instructions", "instructionsFile", "tools",
		"middleware", "prices", "limits", "maxIterations", "modelTries", "modelTimeout", "modelIdleTimeout",
		"maxAnswer", "maxCalls", "maxArguments", "maxMedia", "toolTimeout", "maxToolResult", "import",
		"clientInstructions", "clientContext", "media", "urls", "files", "toolErrors", "policy", "chat", "onBusy",
		"onInterrupted", "onUnfinished", "approvals", "output", "schema"} {
		if !bytes.Contains(data, []byte(key+":")) {
			t.Errorf("the example does not show %s", key)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse("c.yaml", data, known(), noFiles)
		if err != nil {
			var mistakes *config.Error
			if !errors.As(err, &mistakes) || len(mistakes.Mistakes) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			for _, m := range mistakes.Mistakes {
				if m.Line < 1 || m.Column < 1 || m.Text == "" {
					t.Errorf("%+v", m)
				}
			}
			return
		}
		for _, d := range file.Declared {
			var values map[string]any
			if err := d.Decode(&values, nil); err != nil || d.Kind == "" {
				t.Errorf("%s %q: %v", d.Kind, d.Name, err)
			}
		}
		names := map[string]bool{}
		for _, a := range file.Agents {
			l := limitsOf(t, a)
			if a.Name == "" || names[a.Name] || l.MaxIterations < 0 || l.MaxToolResult < 0 || l.ToolTimeout < 0 {
				t.Errorf("%+v", a)
			}
			names[a.Name] = true
			if len(a.Models) == 0 || a.FallbackRefused && len(a.Models) < 2 {
				t.Errorf("%+v", a)
			}
			for _, m := range a.Models {
				var spec asked
				err := m.Decode(&spec, nil)
				if err != nil || spec.Timeout < 0 || spec.IdleTimeout < 0 || len(a.Models) > 1 && m.Name == "" {
					t.Errorf("%+v, %v", m, err)
				}
			}
		}
		if len(names) == 0 {
			t.Error("a configuration without agents")
		}
	})
}

func ExampleParse() {
	data := []byte(`
agents:
  - name: support
    model: opnai/gpt-5-mini
    instuctions: Be kind.
    limits: {toolTimeout: 30}
`)
	_, err := config.Parse("holdfast.yaml", data, config.Known{Models: []string{"demo", "openai/"}}, os.ReadFile)
	fmt.Println(err)
	// Output:
	// holdfast.yaml:4:12: unknown model "opnai/gpt-5-mini"; did you mean "openai/gpt-5-mini"?
	// holdfast.yaml:5:5: unknown key "instuctions"; did you mean "instructions"?
	// holdfast.yaml:6:27: toolTimeout cannot be "30"; write a duration above 0 with its unit, like 30s, 2m or 1h30m
}
