package server_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/server"
)

// filed is an agent of a file in which the options stand that only the file has.
const filed = `
agents:
  - name: a
    models:
      - name: openai/one
        baseURL: "${BASE}"
        headers: {X-Key: "${KEY}"}
        apiKeyEnv: KEY
        params: {temperature: 0.5, seed: 7}
        timeout: 2m
      - {name: openai/two, baseURL: "${BASE}"}
    instructions: Be kind.
    tools: [calculate, child_do]
    middleware:
      - budget: {thread: {cost: 5}}
      - retry: {attempts: 2}
    limits: {maxIterations: 20}
prices: {"*": {input: 1, output: 2}}
mcpServers: {child: {command: no-such-program}}
`

// revisionOfFile returns the revision of the agent of a file.
func revisionOfFile(t *testing.T, text string, env map[string]string, change func(*server.Config)) string {
	t.Helper()
	l, err := server.Load(written(t, text), server.Parts{
		Getenv: func(name string) string { return env[name] },
		Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c := config(t)
	c.Agents, c.Limits = l.Agents, l.Limits
	change(&c)
	return revisionsShown(t, must(server.New(c))(t))["a"]
}

// revisionsShown returns what GET /agents shows.
func revisionsShown(t *testing.T, s *server.Server) map[string]string {
	t.Helper()
	var shown struct {
		Agents []struct{ Name, Revision string }
	}
	if err := json.Unmarshal(answered(s, "GET", "/agents", "").Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, a := range shown.Agents {
		all[a.Name] = a.Revision
	}
	return all
}

// TestRevisionOfAFile: the revision of an agent covers all that its file says of it, except
// where its models are served and with which keys, and it depends on nothing else.
func TestRevisionOfAFile(t *testing.T) {
	env := map[string]string{"BASE": "http://localhost:1/v1", "KEY": "a-secret"}
	same := func(*server.Config) {}
	want := revisionOfFile(t, filed, env, same)
	if len(want) != 12 {
		t.Fatalf("the revision is %q", want)
	}
	for name, got := range map[string]string{
		"again": revisionOfFile(t, filed, env, same),
		"other secrets": revisionOfFile(t, filed, map[string]string{"BASE": "http://elsewhere:2/v1", "KEY": "another"},
			same),
		"otherwise written": revisionOfFile(t,
			strings.NewReplacer("temperature: 0.5, seed: 7", "seed: 7, temperature: 0.5", "Be kind.",
				"\"Be kind.\" # always", "{thread: {cost: 5}}", "\n          thread: {cost: 5}", "a-secret", "x").
				Replace(filed), env, same),
		"an agent more": revisionOfFile(t, strings.Replace(filed, "prices:", "  - {name: b, model: demo}\nprices:", 1),
			env, same),
		"what is between runs": revisionOfFile(t,
			strings.Replace(filed, "    limits:", "    onRevision: pin\n    approvals: approver\n    policy: {chat: "+
				"true}\n    description: D\n    limits:", 1), env, func(c *server.Config) {
				c.OnRevision, c.MaxRuns = "pin", 3
			}),
	} {
		if got != want {
			t.Errorf("%s: the revision is %s, want %s", name, got, want)
		}
	}
	seen := map[string]string{want: "the file"}
	for change, to := range map[string]string{
		"temperature: 0.5": "temperature: 0.6", "timeout: 2m": "timeout: 3m", "openai/two": "openai/three",
		"Be kind.": "Be brief.", "[calculate, child_do]": "[calculate, child_say]",
		"cost: 5": "cost: 6", "attempts: 2": "attempts: 3", "input: 1": "input: 3",
		"maxIterations: 20": "maxIterations: 21", "tools: [calculate": "tools: [current_time",
		"      - retry: {attempts: 2}\n": "",
	} {
		got := revisionOfFile(t, strings.Replace(filed, change, to, 1), env, same)
		if other, taken := seen[got]; taken {
			t.Errorf("with %q it has the revision of %s", to, other)
		}
		seen[got] = to
	}
	if got := revisionOfFile(t, filed, env, func(c *server.Config) { c.ToolTimeout = time.Hour }); got == want {
		t.Error("the server's limits do not count")
	}
}

// TestRevisionsAfterReload: what is shown after a reload is the new revision, and the log has
// both.
func TestRevisionsAfterReload(t *testing.T) {
	c, log := config(t), &process.Log{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	c.Agents = []holdfast.Agent{signed("a", "old", nil), signed("b", "same", nil)}
	s := served(t, c)
	before := revisionsShown(t, s)
	must(s.Reload([]holdfast.Agent{signed("a", "new", nil), signed("b", "same", nil)}, nil, server.Quotas{}))(t)
	after := revisionsShown(t, s)
	if before["a"] == after["a"] || before["b"] != after["b"] || after["a"] == "" {
		t.Errorf("the revisions were %v and are %v", before, after)
	}
	if got := log.String(); !strings.Contains(got,
		`msg="an agent has another revision" agent=a from=`+before["a"]+" to="+after["a"]) ||
		strings.Contains(got, "agent=b") {
		t.Errorf("the log is %s", got)
	}
}

// TestModelsShown: GET /agents names the models in the order in which they are asked, as events
// and logs do.
func TestModelsShown(t *testing.T) {
	l := must(server.Load(written(t, filed), server.Parts{
		Getenv: func(string) string { return "http://localhost:1/v1" },
		Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
	}))(t)
	t.Cleanup(l.Close)
	c := config(t)
	c.Agents = append(l.Agents, holdfast.Agent{Name: "own", Model: hello})
	got := answered(must(server.New(c))(t), "GET", "/agents", "").Body.String()
	for _, want := range []string{`"models":["openai/one","openai/two"]`, `"models":["custom/own"]`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}
