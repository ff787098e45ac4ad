package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/webhook"
)

// TestDeclaredMistakes: what the packages of the tools find is reported at the option, without
// the environment and without starting anything.
func TestDeclaredMistakes(t *testing.T) {
	const document = `"openapi": "3.0.3", "servers": [{"url": "https://s.example"}], "paths": {"/a/{x}": {"get": ` +
		`{"operationId": "a"}}, "/b": {"get": {"operationId": "b"}}}`
	for name, c := range map[string]struct{ file, want string }{
		"http url": {"tools:\n  - name: a\n    http: {url: x.example/a}\n",
			`3:17: url: it must be absolute, like https://api.example/orders/{id}`},
		"http method": {"tools:\n  - name: a\n    http: {url: \"https://x.example/\", method: FETCH}\n",
			`3:47: method: "FETCH" must be GET, HEAD, POST, PUT, PATCH or DELETE`},
		"http header": {"tools:\n  - name: a\n    http:\n      url: https://x.example/\n      headers: {X-A: \"{b\"}\n",
			`5:22: headers: X-A: it has a { without its counterpart`},
		"http allow": {"tools:\n  - name: a\n    http: {url: \"https://x.example/\", allow: [localhost, \"a b\"]}\n",
			`3:58: allow[1]: "a b" must be a host, an address or a block of addresses, like orders.internal, ` +
				`localhost:8080 or 10.0.0.0/8`},
		"http parameters": {"tools:\n  - name: a\n    parameters: {type: object, properties: {b: {}}}\n    http: " +
			"{url: \"https://x.example/{c}\"}\n",
			`3:17: parameters: {c} is used but is not among its properties`},
		"http pointer": {"tools:\n  - name: a\n    http: {url: \"https://x.example/\", result: {select: [a]}}\n",
			`3:57: result.select[0]: "a" must be a JSON pointer, like /items/0/id, or "" for all of it`},
		"http look-up": {"tools:\n  - name: a\n    effect: query\n    http: {url: \"https://x.example/\"}\n",
			`2:5: lookUp: a tool whose effect is query needs the URL where it finds out what became of a call`},
		"http credential": {"tools:\n  - name: a\n    http: {url: \"http://x.example/{b}\", credential: {env: A}}\n",
			`3:53: credential: x.example would get the credential unencrypted: use https`},
		"variable in a host": {"tools:\n  - name: a\n    http: {url: \"https://${HOST}/\"}\n",
			`3:17: url: scheme and host cannot have arguments: it must begin like https://api.example/`},
		"server command": {"mcpServers:\n  s: {dir: x}\n",
			"2:3: command: set command, to start a server, or url, to reach one\nF:2:3: env: env and dir are for a " +
				"server that is started with command"},
		"server name": {"mcpServers:\n  my_server: {command: x}\n",
			`2:3: name: "my_server" is no name of at most 32 letters, digits and hyphens`},
		"server url": {"mcpServers:\n  s: {url: nowhere}\n",
			`2:12: url: it is not the URL of a server, such as https://example.com/mcp`},
		"server pattern": {"mcpServers:\n  s: {command: x, tools: [a, \"[\"]}\n",
			`2:26: tools: "[" is no pattern of a tool's name`},
		"server header": {"mcpServers:\n  s: {url: \"https://x.example\", headers: {Mcp-X: a}}\n",
			`2:50: headers: Mcp-X is set by the protocol`},
		"webhook": {"tools:\n  - name: a\n    outside:\n      webhook: {headers: {X-A: b}}\n",
			`4:16: url is missing`},
		"webhook header": {"tools:\n  - name: a\n    outside:\n      webhook: {url: " +
			"\"https://x.example\", headers: {host: b}}\n",
			`4:59: headers: host is set by the server`},
		"outside query": {"tools:\n  - name: a\n    effect: query\n    outside: {}\n",
			`3:13: effect: a call that is finished from outside cannot be looked up; use once or idempotent`},
		"directory": {"tools:\n  - files: {directory: ./nosuch}\n",
			`2:24: directory: open D/nosuch: no such file or directory`},
		"fetch": {"tools:\n  - fetch: {proxy: nowhere}\n",
			`2:20: proxy: it must be a URL like http://proxy:3128, "environment", or "direct" for none`},
		"document": {"openapi:\n  - document: bad.json\n    operations: [a]\n",
			`2:5: openapi: "2.0" is no version that is known: it must be 3.0 or 3.1`},
		"operation": {"openapi:\n  - document: doc.json\n    operations: [b, nosuch]\n",
			`3:21: operations[1] (nosuch): the document has no such operation; it has a, b`},
		"operation's document": {"openapi:\n  - document: doc.json\n    operations: [a]\n",
			`3:18: operations[0] (a): paths./a/{x}.get: its path has a name in braces that is no parameter, or it or ` +
				`the URL of its server has a $, ? or #`},
		"operation's effect": {"openapi:\n  - document: doc.json\n    operations:\n      - operation: b\n        " +
			"effect: once\n        lookUp: https://x.example/{call.key}\n",
			`6:17: operations[0] (b): lookUp: it is only used if the effect is query, not once`},
		"names": {"openapi:\n  - document: doc.json\n    operations: [b]\n  - document: doc.json\n    operations: " +
			"[{operation: b, description: c}]\n",
			`5:18: the tool "b" is declared twice, the first on line 3; give each a name of its own`},
	} {
		path := written(t, c.file+"agents: [{name: a}]\n")
		dir := filepath.Dir(path)
		for name, text := range map[string]string{"doc.json": "{" + document + "}", "bad.json": `{"openapi": "2.0"}`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := server.ValidateAgents(path, server.Parts{Getenv: noEnv})
		want := path + ":" + strings.ReplaceAll(strings.ReplaceAll(c.want, "F:", path+":"), "D/", dir+"/")
		if err == nil || err.Error() != want {
			t.Errorf("%s: got\n%v, want\n%s", name, err, want)
		}
	}
}

// everything is a file that declares tools of each kind.
const everything = `
agents:
  - name: a
    model: demo
    tools: [reserve, "stock_*", request_refund, list_files, docs_read_file, http_get]
tools:
  - name: reserve
    description: Reserves an item.
    effect: query
    inDoubt: ask
    parameters:
      type: object
      required: [item]
      properties: {item: {type: string}, count: {type: integer, maximum: 9007199254740993}}
    http:
      method: POST
      url: ${BASE}/items/{item}
      headers: {X-Team: "${TEAM}"}
      lookUp: ${BASE}/reservations/{call.key}
      allow: [127.0.0.1]
      result: {select: [/n]}
      timeout: 3s
      credential: {file: token.txt}
  - name: request_refund
    description: Asks for a refund.
    parameters: {type: object, properties: {order: {type: string}}}
    outside:
      result: {type: object, required: [approved]}
      expiresAfter: 72h
      abandonable: true
      finishedBy: approver
      timeout: 1m
      webhook: {url: "${BASE}/hook", secret: "${HOOK_SECRET}", timeout: 5s}
  - files: {directory: ., maxBytes: 1KiB}
  - files: {directory: "${DATA}", prefix: docs_}
  - fetch: {allow: [127.0.0.1]}
openapi:
  - document: stock.yaml
    server: ${BASE}
    prefix: stock_
    allow: [127.0.0.1]
    operations: [getItem, {operation: PUT /items, name: put, effect: idempotent}]
    credential: {env: STOCK_TOKEN, header: X-Token, prefix: "t "}
`

const stock = `
openapi: 3.0.3
paths:
  /items:
    get: {operationId: getItem}
    put: {}
`

// TestDeclaredTools: everything in a file becomes the tools that it says, and they are called
// with the values of the environment.
func TestDeclaredTools(t *testing.T) {
	asked := make(chan *http.Request, 10)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"n": 9007199254740993}`)
	}))
	t.Cleanup(service.Close)
	path := written(t, everything)
	dir := filepath.Dir(path)
	for name, text := range map[string]string{"stock.yaml": stock, "token.txt": "token-of-the-file\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{
		"BASE":        service.URL,
		"TEAM":        "support",
		"HOOK_SECRET": "s",
		"DATA":        dir,
		"STOCK_TOKEN": "token-of-the-stock",
	}
	l, err := server.Load(path, server.Parts{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	specs := map[string]holdfast.ToolSpec{}
	var got []string
	for _, tool := range l.Agents[0].Tools {
		spec := tool.Spec()
		specs[spec.Name], got = spec, append(got, spec.Name+" "+string(spec.Effect))
	}
	if want := []string{
		"reserve query",
		"stock_getItem pure",
		"stock_put idempotent",
		"request_refund once",
		"list_files pure",
		"docs_read_file pure",
		"http_get pure",
	}; !slices.Equal(got, want) {
		t.Errorf("the tools are %q, want %q", got, want)
	}
	if s := specs["reserve"]; s.Query == nil || s.InDoubt != holdfast.DoubtAsk ||
		!strings.Contains(string(s.Parameters), "9007199254740993") || s.Timeout < 3*time.Second ||
		s.Timeout > 10*time.Second {
		t.Errorf("reserve is %+v", s)
	}
	if o := specs["request_refund"].Outside; o == nil || o.ExpiresAfter != 72*time.Hour || !o.Abandonable ||
		o.FinishedBy != access.RoleApprover || o.Deliver == nil || !strings.Contains(string(o.Result), "approved") ||
		specs["request_refund"].Timeout != time.Minute {
		t.Errorf("request_refund is %+v", o)
	}

	c := config(t)
	c.Agents = l.Agents
	url := started(t, c)
	if got := post(t, url, "t1", `use reserve {"item": "a b", "count": 2}`); !strings.Contains(got,
		"9007199254740993") {
		t.Errorf("the service's answer is not shown: %s", got)
	}
	if r := <-asked; r.URL.Path != "/items/a b" || r.Header.Get("X-Team") != "support" ||
		r.Header.Get("Authorization") != "Bearer token-of-the-file" {
		t.Errorf("asked is %s, %v", r.URL, r.Header)
	}
	if got := post(t, url, "t2", "use stock_getItem {}"); strings.Contains(got, "token-of") {
		t.Errorf("the credential is shown: %s", got)
	}
	if r := <-asked; r.URL.Path != "/items" || r.Header.Get("X-Token") != "t token-of-the-stock" {
		t.Errorf("asked is %s, %v", r.URL, r.Header)
	}
	if got := post(t, url, "t3", `use request_refund {"order": "1"}`); !strings.Contains(got, "outsideCalls") {
		t.Errorf("the call does not wait: %s", got)
	}
	if r := <-asked; r.URL.Path != "/hook" || r.Header.Get(webhook.HeaderSignature) == "" {
		t.Errorf("the webhook is asked with %s, %v", r.URL, r.Header)
	}
	if got := post(t, url, "t4", `use docs_read_file {"path": "stock.yaml"}`); !strings.Contains(got,
		"openapi: 3.0.3") {
		t.Errorf("the file is not read: %s", got)
	}
}

// TestMissingCredential: a file with a credential that is not there, is empty or cannot be
// read takes only the tool away that needs it, until it is there.
func TestMissingCredential(t *testing.T) {
	var mu sync.Mutex
	sent := []string{}
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Authorization"))
	}))
	defer service.Close()
	host := strings.TrimPrefix(service.URL, "http://")
	path := written(t, `agents: [{name: a, model: demo}]
tools:
  - name: locked
    description: x
    http: {url: "`+service.URL+`/locked", allow: ["`+host+`"], credential: {file: nosuch.txt}}
  - name: free
    description: x
    http: {url: "`+service.URL+`/free", allow: ["`+host+`"]}
`)
	var log strings.Builder
	loaded, err := server.Load(path, server.Parts{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if want := "a credential is missing"; !strings.Contains(log.String(), want) ||
		!strings.Contains(log.String(), path+":5:") {
		t.Errorf("the log is %s", log.String())
	}
	call := func(name string) (string, error) {
		for _, tool := range loaded.Declared {
			if tool.Spec().Name == name {
				r, err := tool.Call(t.Context(),
					holdfast.ToolCall{ID: "c", Name: name, Arguments: json.RawMessage("{}")})
				return r.Text, err
			}
		}
		return "", errors.New("there is no such tool")
	}
	if _, err := call("free"); err != nil {
		t.Error(err)
	}
	text, err := call("locked")
	if said := fmt.Sprint(text, err); !strings.Contains(said, "the file with the credential cannot be read") ||
		strings.Contains(said, filepath.Dir(path)) {
		t.Errorf("the call says %s", said)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "nosuch.txt"), []byte("key1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := call("locked"); err != nil {
		t.Error(text, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"", "Bearer key1"}; !slices.Equal(sent, want) {
		t.Errorf("the service got %q, want %q", sent, want)
	}
}

// TestDeclaredEnvironment: a variable with a credential that is not set is a mistake with its place before
// anything runs.
func TestDeclaredEnvironment(t *testing.T) {
	path := written(t, `agents: [{name: a, model: demo}]
tools:
  - name: a
    http: {url: "https://x.example", credential: {env: NOT_SET}}
  - name: b
    http: {url: "https://x.example", credential: {file: nosuch.txt}} # may still come
  - name: c
    http: {url: "${URL}/a"}
mcpServers:
  s: {url: "${URL}"}
`)
	_, err := server.Load(path, server.Parts{Getenv: func(name string) string {
		return map[string]string{"URL": "verysecret"}[name]
	}})
	want := strings.ReplaceAll(`P:10:12: url: it is not the URL of a server, such as https://example.com/mcp
P:4:56: credential: the environment variable NOT_SET is not set
P:8:17: url: it must be absolute, like https://api.example/orders/{id}`, "P:", path+":")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestDeclaredKeys: whatever the options of the packages have, the file has too.
func TestDeclaredKeys(t *testing.T) {
	for begin, options := range map[string]reflect.Type{
		"mcpServers:\n  s:\n    ":                                     reflect.TypeFor[mcp.Options](),
		"tools:\n  - name: a\n    http:\n      ":                      reflect.TypeFor[httptool.Options](),
		"tools:\n  - name: a\n    outside:\n      webhook:\n        ": reflect.TypeFor[webhook.Options](),
		"tools:\n  - fetch:\n      ":                                  reflect.TypeFor[httptool.FetchOptions](),
		"openapi:\n  - document: x\n    ":                             reflect.TypeFor[httptool.OpenAPIOptions](),
		"openapi:\n  - document: x\n" +
			"    operations:\n      - operation: x\n        ": reflect.TypeFor[httptool.Operation](),
		"tools:\n  - name: a\n    http:\n      result:\n        ": reflect.TypeFor[httptool.Result](),
	} {
		for i := range options.NumField() {
			key, _, _ := strings.Cut(options.Field(i).Tag.Get("json"), ",")
			if key == "-" || key == "operation" {
				continue
			}
			_, _, err := server.ValidateAgents(written(t, begin+key+": [[]]\nagents: [{name: a}]\n"),
				server.Parts{Getenv: noEnv})
			if beside := []string{
				"name",
				"description",
				"effect",
				"inDoubt",
				"parameters",
			}; err == nil || strings.Contains(err.Error(), "unknown key") &&
				!(slices.Contains(beside, key) && strings.Contains(err.Error(), "write it beside http")) &&
				!(key == "name" && begin == "mcpServers:\n  s:\n    ") {
				t.Errorf("%s%s: %v", begin, key, err)
			}
		}
	}
}

// TestToolsOfTheExample: what is commented out in the file that people copy is valid, too.
func TestToolsOfTheExample(t *testing.T) {
	data, err := os.ReadFile("../holdfast.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, commented, found := strings.Cut(string(data), "#\n# mcpServers:\n")
	text := "mcpServers:\n" + strings.ReplaceAll("\n"+commented, "\n# ", "\n")[1:] + `
agents:
  - name: a
    tools: [reserve, request_refund, list_files, read_file, http_get, "stock_*", "files_*", github_get_issue]
`
	path := written(t, text)
	dir := filepath.Dir(path)
	document := `{"openapi": "3.0.3", "paths": {"/items": {"get": {"operationId": "getItem"}}, ` +
		`"/items/{item}/price": {"put": {"parameters": [{"name": "item", "in": "path", "required": true, "schema": ` +
		`{"type": "string"}}]}}}}`
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "stock.yaml"), []byte(document), 0o600),
		os.Mkdir(filepath.Join(dir, "docs"), 0o700)); err != nil {
		t.Fatal(err)
	}
	agents, _, err := server.ValidateAgents(path, server.Parts{Getenv: noEnv})
	if !found || err != nil || len(agents[0].Tools) != 7 {
		t.Errorf("%+v, %v in\n%s", agents, err, text)
	}
}

// TestVariablesUnchecked: the values of variables are not known when the file is only checked,
// so they cannot be wrong.
func TestVariablesUnchecked(t *testing.T) {
	for _, text := range []string{
		`tools: [{name: a, effect: query, http: {url: "http://localhost:8080/a", lookUp: "${BASE}/b"}}]`,
		`tools: [{name: a, effect: query, http: {url: "${BASE}/a", lookUp: "http://localhost:8080/b"}}]`,
		`tools: [{name: a, http: {url: "${BASE}", headers: {X-A: "${B}"}, proxy: "${PROXY}", credential: {env: C}}}]`,
		`tools: [{files: {directory: "${DATA}"}}]`,
		`tools: [{name: a, outside: {webhook: {url: "${HOOK}", secret: "${SECRET}", headers: {X-A: "${B}"}}}}]`,
		`mcpServers: {a: {url: "http://${HOST}:${PORT}/mcp", proxy: "${PROXY}", credential: {env: C}}}`,
		`mcpServers: {a: {command: "${PROGRAM}", args: ["${A}"], dir: "${DIR}", env: {A: "${A}"}}}`,
	} {
		if _, _, err := server.ValidateAgents(written(t, "agents: [{name: a}]\n"+text+"\n"),
			server.Parts{Getenv: noEnv}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestBuiltInReplaced: what the file declares takes the place of a built-in tool.
func TestBuiltInReplaced(t *testing.T) {
	l, err := server.Load(written(t, "agents: [{name: a, tools: [lookup]}]\ntools: [{name: lookup, description: "+
		"ours, http: {url: \"https://x.example/{word}\"}}]\n"), server.Parts{Getenv: noEnv, DefaultModel: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if tools := l.Agents[0].Tools; len(tools) != 1 || tools[0].Spec().Description != "ours" {
		t.Errorf("the tools are %v", tools)
	}
	var schema struct{ Required []string }
	if err := json.Unmarshal(l.Agents[0].Tools[0].Spec().Parameters, &schema); err != nil ||
		fmt.Sprint(schema.Required) != "[word]" {
		t.Errorf("it has %v, %v", schema, err)
	}
}
