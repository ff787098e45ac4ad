package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/config"
)

// declarations loads testdata/declared.yaml, in which every key is set.
func declarations(t *testing.T) *config.File {
	t.Helper()
	f, err := config.Load("testdata/declared.yaml", known())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestListedTools(t *testing.T) {
	a := declarations(t).Agents[0]
	if want := []string{
		"lookup",
		"reserve",
		"stock_getItem",
		"stock_put",
		"stock_query",
		"list_files",
		"docs_read_file",
		"http_get",
		"request_refund",
	}; !reflect.DeepEqual(a.ToolNames, want) {
		t.Errorf("the tools are %q, want %q", a.ToolNames, want)
	}
	if want := []config.ServerTools{
		{"everything", []string{"everything_*"}},
		{"github", []string{"github_create_issue", "github_get_*"}},
	}; !reflect.DeepEqual(a.ServerTools, want) {
		t.Errorf("those of MCP servers are %+v, want %+v", a.ServerTools, want)
	}
}

// TestDecode: the JSON has the units of Go, exact numbers, the order of the file, paths that
// are relative to the file, and values of the environment where they are not templates.
func TestDecode(t *testing.T) {
	getenv := func(name string) string { return "value-of-" + name }
	decoded := map[string]string{}
	for _, d := range declarations(t).Declared {
		var values map[string]json.RawMessage
		if err := d.Decode(&values, getenv); err != nil {
			t.Fatal(err)
		}
		for key, raw := range values {
			decoded[d.Kind+" "+d.Name+" "+key] = string(raw)
		}
	}
	for key, want := range map[string]string{
		"mcpServers everything name": `"everything"`,
		"mcpServers everything command": `["npx","-y","@modelcontextprotocol/server-everything",` +
			`"--token=value-of-TOKEN"]`,
		"mcpServers everything env":             `{"DEBUG":"1","TOKEN":"value-of-EVERYTHING_TOKEN"}`,
		"mcpServers everything dir":             `"` + filepath.Join("testdata", "docs") + `"`,
		"mcpServers everything timeout":         `30000000000`,
		"mcpServers everything maxMessageBytes": `8388608`,
		"mcpServers everything elicitation":     `true`,
		"mcpServers local command":              `["./server","--stdio"]`,
		"mcpServers github url":                 `"https://value-of-HOST/mcp"`,
		"mcpServers github headers":             `{"Authorization":"Bearer value-of-GITHUB_TOKEN"}`,
		"http reserve url":                      `"${BASE}/items/{item}/reservations?note={note}"`,
		"http reserve headers":                  `{"Authorization":"Bearer ${STOCK_TOKEN}","X-Note":"{note}"}`,
		"http reserve body":                     `{"count":"{count}","price":1.10}`,
		"http reserve parameters": `{"type":"object","required":["item"],` +
			`"properties":{"item":{"type":"string"},"count":{"type":"integer","maximum":9007199254740993}}}`,
		"http reserve notDone":                `[501,503]`,
		"http reserve result":                 `{"maxBytes":65536,"select":["","/a/b"]}`,
		"outside request_refund expiresAfter": `259200000000000`,
		"outside request_refund webhook": `{"headers":{"X-A":"b"},"secret":"value-of-WEBHOOK_SECRET",` +
			`"timeout":5000000000,"url":"value-of-HOOK"}`,
		"files  directory": `"value-of-DATA/docs"`,
		"fetch  maxBytes":  `65536`,
		"openapi  server":  `"${BASE}"`,
	} {
		want = strings.ReplaceAll(want, `"value-of-DATA`, `"`+filepath.Join("testdata", "value-of-DATA"))
		if decoded[key] != want {
			t.Errorf("%s is %s, want %s", key, decoded[key], want)
		}
	}
	if raw := decoded["outside request_refund result"]; !strings.Contains(raw, `"n"`) ||
		raw != decoded["outside request_refund parameters"] {
		t.Errorf("the schemas of files are %q", raw)
	}
}

func TestCredentials(t *testing.T) {
	got := map[string]config.Credential{}
	for _, d := range declarations(t).Declared {
		if d.Credential != nil {
			got[d.Kind] = *d.Credential
		}
	}
	want := map[string]config.Credential{
		config.KindMCP:     {Env: "GITHUB_TOKEN", Header: "X-Token", Prefix: "token ", Scopes: []string{"repo"}},
		config.KindHTTP:    {File: filepath.Join("testdata", "token.txt")},
		config.KindOpenAPI: {Env: "STOCK_TOKEN"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestUnsetVariables: each one is a mistake at its place, also in templates, and values are
// in none.
func TestUnsetVariables(t *testing.T) {
	var got []string
	for _, d := range declarations(t).Declared {
		var values map[string]any
		err := d.Decode(&values, func(name string) string {
			return map[string]string{"STOCK_TOKEN": "verysecret"}[name]
		})
		if err != nil {
			got = append(got, strings.Split(err.Error(), "\n")...)
		}
	}
	want := []string{
		`7:59: args[2] needs the environment variable TOKEN, which is not set`,
		`8:18: env.TOKEN needs the environment variable EVERYTHING_TOKEN, which is not set`,
		`25:10: url needs the environment variable HOST, which is not set`,
		`26:30: headers.Authorization needs the environment variable GITHUB_TOKEN, which is not set`,
		`29:12: proxy needs the environment variable PROXY, which is not set`,
		`38:12: url needs the environment variable BASE, which is not set`,
		`41:15: lookUp needs the environment variable BASE, which is not set`,
		`57:22: webhook.url needs the environment variable HOOK, which is not set`,
		`57:60: webhook.secret needs the environment variable WEBHOOK_SECRET, which is not set`,
		`59:24: directory needs the environment variable DATA, which is not set`,
		`64:13: server needs the environment variable BASE, which is not set`,
		`71:51: operations[2].lookUp needs the environment variable BASE, which is not set`,
	}
	for i := range want {
		want[i] = "testdata/declared.yaml:" + want[i]
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLocated: an error is reported at the option that it names.
func TestLocated(t *testing.T) {
	f := declarations(t)
	find := func(kind string) *config.Declaration {
		for _, d := range f.Declared {
			if d.Kind == kind {
				return d
			}
		}
		t.Fatalf("there is no %s", kind)
		return nil
	}
	for _, c := range []struct{ kind, within, text, want string }{
		{config.KindMCP, "", "timeout: it must not be negative", "17:14: timeout: it must not be negative"},
		{config.KindMCP, "", "effects.echo: x", "11:21: effects.echo: x"},
		{config.KindMCP, "", "effects.other: x", "5:3: effects.other: x"},
		{config.KindMCP, "", "nothing that is an option", "5:3: nothing that is an option"},
		{config.KindHTTP, "", "headers: X-Note: x", "39:65: headers: X-Note: x"},
		{config.KindHTTP, "", "result.select[1]: x", "43:29: result.select[1]: x"},
		{config.KindOpenAPI, "", "operations[1] (putItem): name: x", "70:36: operations[1] (putItem): name: x"},
		{config.KindOpenAPI, "", "operations[1] (putItem): paths./a: x", "70:9: operations[1] (putItem): paths./a: x"},
		{config.KindOutside, "", "the field ExpiresAfter is -1", "53:21: expiresAfter is -1"},
		{config.KindOutside, "webhook", "url is missing", "57:22: url is missing"},
		{config.KindOutside, "webhook", "other", "57:16: other"},
	} {
		err := find(c.kind).Located(errors.New(c.text), c.within)
		if want := "testdata/declared.yaml:" + c.want; err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	}
	both := errors.Join(errors.New("timeout: a"), fmt.Errorf("dir: %w", errors.New("b")))
	if got, want := find(config.KindMCP).Located(both, "").
		Error(),
		"testdata/declared.yaml:17:14: timeout: a\ntestdata/declared.yaml:9:10: dir: b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
