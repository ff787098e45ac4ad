package command

// The blocks of the pages that are about the program: the lines to type, the agents file,
// and the client in the README.

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConsoleBlocks: what the pages tell people to type exists: commands and flags of the
// program, targets of the Makefile, packages and files. Output on the pages is not compared.
func TestConsoleBlocks(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md", "../../CONTRIBUTING.md")
	typed := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text),
			-1) {
			for _, m := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(block[1], -1) {
				typed++
				if problem := checkLine(m[1]); problem != "" {
					t.Errorf("%s: %s: %s", page, m[1], problem)
				}
			}
		}
	}
	if typed < 25 {
		t.Errorf("only %d lines were found", typed)
	}
}

// assignment is a variable before a command.
var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// checkLine returns what is wrong with a line that a page tells people to type.
func checkLine(line string) string {
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	for len(words) > 0 && (assignment.MatchString(words[0]) || words[0] == "sudo") {
		words = words[1:]
	}
	if len(words) == 0 {
		return "there is no command"
	}
	switch words[0] {
	case "holdfast", "bin/holdfast":
		return checkProgram(words[1:])
	case "make":
		return checkTarget(words[1:])
	case "go":
		return checkGo(words[1:])
	case "cat", "curl", "docker", "kill", "cd", "git", "npm":
		return ""
	}
	if _, err := os.Stat(filepath.Join("../..", words[0])); err != nil {
		return "there is no " + words[0]
	}
	return ""
}

// checkProgram parses the arguments as the program does.
func checkProgram(args []string) string {
	for i, a := range args {
		if a == "&" {
			args = args[:i]
			break
		}
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		// The command itself says which flags it has.
		var usage bytes.Buffer
		if _, ok := command([]string{args[0], "--help"}, env(nil), &usage, &usage); !ok {
			return args[0] + " is no command"
		}
		for _, a := range args[1:] {
			name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
			if strings.HasPrefix(a, "-") &&
				!regexp.MustCompile(`(?m)^\s*--?`+regexp.QuoteMeta(name)+`\b`).MatchString(usage.String()) {
				return args[0] + " has no flag " + a
			}
		}
		return ""
	}
	if _, err := parseOptions(args, env(nil)); err != nil && err != flag.ErrHelp {
		return err.Error()
	}
	return ""
}

func checkTarget(args []string) string {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		return err.Error()
	}
	for _, target := range args {
		if !strings.Contains(target, "=") && !strings.Contains(string(makefile), "\n"+target+":") {
			return "the Makefile has no " + target
		}
	}
	return ""
}

// checkGo looks for the packages that a go command names.
func checkGo(args []string) string {
	for i, a := range args {
		a = strings.TrimSuffix(strings.TrimSuffix(a, "..."), "/")
		if !strings.HasPrefix(a, "./") || i > 0 && args[i-1] == "-o" {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", a)); err != nil {
			return "there is no " + a
		}
	}
	if len(args) > 2 && args[0] == "run" && (args[1] == "./cmd/server" || args[1] == "./cmd/holdfast") {
		return checkProgram(args[2:])
	}
	return ""
}

func TestCheckLine(t *testing.T) {
	for line, bad := range map[string]bool{
		"holdfast --store redis://localhost:6379/0": false,
		"A=b holdfast --model openai/x   # why":     false,
		"holdfast --colour":                         true,
		"holdfast polish":                           true,
		"holdfast check --colour":                   true,
		"holdfast check data":                       false,
		"make run":                                  false,
		"make money":                                true,
		"go test ./internal/nowhere":                true,
		"go run ./cmd/server --colour":              true,
		"frobnicate":                                true,
	} {
		if got := checkLine(line); (got != "") != bad {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestFileOnThePage: the agents files on these pages are valid.
func TestFileOnThePage(t *testing.T) {
	const item = `"parameters": [{"name": "item", "in": "path", "required": true, "schema": {"type": "string"}}]`
	const document = `{"openapi": "3.0.3", "paths": {
		"/items/{item}": {` + item + `, "get": {"operationId": "getItem"}, "put": {}},
		"/items/{item}/price": {"put": {` + item + `}}}}`
	for _, name := range []string{"configuration", "tools", "mcp", "shared-state", "remote-agents"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(page, -1)
		if len(blocks) == 0 {
			t.Fatalf("there is no file on the page %s", name)
		}
		for _, b := range blocks {
			dir := t.TempDir()
			file := filepath.Join(dir, "holdfast.yaml")
			if err := errors.Join(os.WriteFile(file, b[1], 0o600),
				os.WriteFile(filepath.Join(dir, "stock.yaml"), []byte(document), 0o600),
				os.Mkdir(filepath.Join(dir, "docs"), 0o700)); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if code := run(t.Context(), []string{"validate", "--config", file}, env(nil), &out, &out); code != exitOK {
				t.Errorf("%s: exit %d: %s in\n%s", name, code, out.String(), b[1])
			}
		}
	}
}
