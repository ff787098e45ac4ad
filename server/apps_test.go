package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/server"
)

// weather is an MCP server whose tools have an interface.
func weather(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name, URI string }
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	const complete = `{"resultType":"complete",`
	result := complete + `"content":[{"type":"text","text":"` + m.Params.Name + ` was called"}]}`
	tool := func(name, visible string) string {
		return `{"name":"` + name + `","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://w/page",` +
			`"visibility":[` + visible + `]}}}`
	}
	switch m.Method {
	case "server/discover":
		result = complete + `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,` +
			`"cacheScope":"private"}`
	case "tools/list":
		result = complete + `"tools":[` + tool("show", "") + `,` + tool("refresh", `"app"`) + `,` + tool("pay", "") +
			`,` +
			tool("wipe", "") + `,` + tool("secret", `"model"`) + `],"ttlMs":0,"cacheScope":"private"}`
	case "resources/read":
		result = complete + `"contents":[{"uri":"ui://w/page",` +
			`"mimeType":"text/html;profile=mcp-app","text":"<p>hi</p>",` +
			`"_meta":{"ui":{"csp":{"connectDomains":["https://a.example","https://b.example"]}}}}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// TestApps: the interface of a tool is shown with what it may reach, and the agent's middleware decides about the
// calls that it makes as about a model's.
func TestApps(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		weather(w, r)
	}))
	t.Cleanup(web.Close)
	tools, err := mcp.Open(mcp.Options{Name: "w", URL: web.URL, Allow: []string{"127.0.0.1"},
		Effect: holdfast.EffectIdempotent, Apps: &mcp.Apps{Network: []string{"https://b.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tools.Close)
	if err := tools.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	who := holdfast.Principal{Tenant: "acme", User: "ada"}
	var log process.Log
	cfg := config(t)
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Authenticate = func(*http.Request) (holdfast.Principal, error) { return who, nil }
	cfg.Agents = []holdfast.Agent{{
		Name:     "a",
		Model:    looptest.Say(looptest.Calls("w_show", `{}`), holdfast.Delta{Text: "done"}),
		Toolsets: []holdfast.Toolset{tools},
		Middleware: []holdfast.Middleware{permission.New(permission.Options{Default: permission.Allow,
			Rules: []permission.Rule{
				{Tool: "w_wipe", Then: permission.Deny, Reason: "never"},
				{Tool: "w_pay", Then: permission.Ask},
			}})},
	}}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	const input = `{"protocolVersion":"1.0","threadId":"t","runId":"r","tools":[],"context":[],"state":{},` +
		`"messages":[{"id":"u","role":"user","content":"go"}],"forwardedProps":{}}`
	stream := answered(s, http.MethodPost, "/runs", input).Body.String()
	_, after, shown := strings.Cut(stream, `"ACTIVITY_SNAPSHOT","messageId":"`)
	id, _, _ := strings.Cut(after, `"`)
	if !shown || !strings.Contains(stream, `"activityType":"mcp-apps"`) {
		t.Fatalf("no interface is shown:\n%s", stream)
	}
	at := "/threads/t/apps/" + url.PathEscape(id)
	if got := answered(s, http.MethodGet, at, ""); got.Code != http.StatusOK ||
		strings.TrimSpace(got.Body.String()) != `{"html":"<p>hi</p>",`+
			`"csp":{"connectDomains":["https://b.example"]}}` {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	for name, want := range map[string]string{
		"show":    `{"content":[{"text":"show was called","type":"text"}]}`,
		"refresh": `{"content":[{"text":"refresh was called","type":"text"}]}`,
		"wipe":    `never`,
		"pay":     `A person would have to be asked`,
		"secret":  `There is no tool`,
		"none":    `There is no tool`,
	} {
		got := answered(s, http.MethodPost, at+"/call", `{"name":"`+name+`","arguments":{}}`)
		if failed := strings.HasSuffix(strings.TrimSpace(got.Body.String()),
			`"isError":true}`); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) ||
			failed == strings.HasPrefix(want, "{") {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
		if line := fmt.Sprintf("tool=%s failed=%v", name,
			!strings.HasPrefix(want, "{")); !strings.Contains(strings.Join(log.Lines(), "\n"), line) {
			t.Errorf("the audit does not say %s", line)
		}
	}
	for _, path := range []string{"/threads/t/apps/u", "/threads/t/apps/none", "/threads/none/apps/" + id} {
		if got := answered(s, http.MethodGet, path, ""); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	down.Store(true)
	if got := answered(s, http.MethodGet, at, ""); got.Code != http.StatusNotFound ||
		!strings.Contains(got.Body.String(), "The server's log has the cause.") ||
		!strings.Contains(strings.Join(log.Lines(), "\n"), "an interface cannot be read") ||
		!strings.Contains(strings.Join(log.Lines(), "\n"), "status 500") {
		t.Errorf("%d %s, and the log has\n%s", got.Code, got.Body, strings.Join(log.Lines(), "\n"))
	}
	down.Store(false)
	for _, who = range []holdfast.Principal{{Tenant: "acme", User: "bob"}, {Tenant: "other", User: "ada"}} {
		for _, got := range []*httptest.ResponseRecorder{answered(s, http.MethodGet, at, ""),
			answered(s, http.MethodPost, at+"/call", `{"name":"show","arguments":{}}`)} {
			if got.Code != http.StatusNotFound {
				t.Errorf("%s of %s gets %d %s", who.User, who.Tenant, got.Code, got.Body)
			}
		}
	}
}
