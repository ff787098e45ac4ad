package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
)

// written writes an agents file and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadAgents loads a file that opens nothing.
func loadAgents(path string, parts server.Parts) ([]holdfast.Agent, map[string]server.Limits, error) {
	l, err := server.Load(path, parts)
	if err != nil {
		return nil, nil, err
	}
	return l.Agents, l.Limits, nil
}

func noEnv(string) string { return "" }

type counterV1 struct {
	N int `json:"n"`
}

type counterOther struct {
	Text string `json:"text"`
}

// counting is a kind with a state of its own.
func counting[T any](name string) holdfast.MiddlewareKind {
	key := state.Register(state.Spec[T]{Name: "acme.counter"})
	return holdfast.MiddlewareKind{Name: name, New: func(raw json.RawMessage) (holdfast.Middleware, error) {
		var o struct {
			Say string `json:"say"`
		}
		err := holdfast.DecodeOptions(raw, &o)
		return holdfast.Middleware{
			Name: name, States: []holdfast.State{key},
			Model: func(next holdfast.ModelCall) holdfast.ModelCall {
				return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					req.Instructions = append(slices.Clone(req.Instructions), o.Say)
					return next(ctx, req)
				}
			},
		}, err
	}}
}

// echo is a model that says its name, what the file says about it, and its
// instructions.
func echo(spec server.ModelSpec) (holdfast.Model, error) {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			params, _ := json.Marshal(spec.Params) // they come from a file
			yield(
				holdfast.Delta{
					Text: spec.Name + " " + spec.BaseURL + " " + spec.APIKeyEnv + " " + string(params) + " " +
						strings.Join(req.Instructions, " "),
					Finish: holdfast.FinishStop,
				},
				nil,
			)
		}
	}), nil
}

// TestLoad: a program's own tools, models and middleware work in the same file
// as the built-in ones, and agents run with them.
func TestLoad(t *testing.T) {
	refund := holdfast.NewTool("refund", "refunds", func(context.Context, struct{}) (string, error) { return "", nil })
	lookup := holdfast.NewTool("lookup", "our own", func(context.Context, struct{}) (string, error) { return "", nil })
	agents, limits, err := loadAgents(written(t, `
agents:
  - name: shop
    model: acme/large
    baseURL: http://localhost:1/v1
    apiKeyEnv: ACME_KEY
    params: {temperature: 0.20}
    instructions: Be kind.
    tools: [refund, lookup, calculate]
    middleware:
      - acme.counter: {say: And count.}
      - circuitBreaker
    limits: {modelTries: 5}
  - name: plain
`), server.Parts{
		Tools: []holdfast.Tool{refund, lookup}, DefaultModel: "acme/small", Getenv: noEnv,
		Models:     map[string]func(server.ModelSpec) (holdfast.Model, error){"acme/": echo},
		Middleware: []holdfast.MiddlewareKind{counting[counterV1]("acme.counter")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, tool := range agents[0].Tools {
		tools = append(tools, tool.Spec().Name+": "+tool.Spec().Description)
	}
	if len(tools) != 3 || tools[0] != "refund: refunds" || tools[1] != "lookup: our own" {
		t.Errorf("tools %q", tools)
	}
	if limits["shop"] != (server.Limits{ModelTries: 5}) || limits["plain"] != (server.Limits{}) {
		t.Errorf("limits %+v", limits)
	}
	c := config(t)
	c.Agents, c.Limits = agents, limits
	url := started(t, c)
	want := `acme/large http://localhost:1/v1 ACME_KEY {\"temperature\":0.20} Be kind. And count.`
	if got := post(t, url, "t", "hi"); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := post(t, url+"/agents/plain", "t2", "hi"); !strings.Contains(got, "acme/small") {
		t.Errorf("the default model: %s", got)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// started runs a server with the configuration until the test ends.
func started(t *testing.T, c server.Config) (url string) {
	t.Helper()
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		front.Close()
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return front.URL
}

// TestLoadMistakes: all mistakes are reported, each with its place.
func TestLoadMistakes(t *testing.T) {
	path := written(t, `
agents:
  - name: a
    model: openai/x
  - name: b
    model: openai/x
    apiKeyEnv: B_KEY
  - name: headers
    model: openai/x
    headers: {X-Team: "${TEAM}"}
  - name: c
  - name: d
    model: anthropic/y
`)
	_, _, err := loadAgents(path, server.Parts{Getenv: noEnv, DefaultModel: "acme"})
	want := path + ":4:5: the model x needs a key: set OPENAI_API_KEY, or name a server that needs " +
		"none with OPENAI_BASE_URL\n" +
		path + ":7:5: the model x needs a key: set B_KEY\n" +
		path + ":10:23: headers.X-Team needs the environment variable TEAM, which is not set\n" +
		path + ":11:5: the model acme is not known\n" +
		path + ":13:5: the model y needs a key: set ANTHROPIC_API_KEY, or name a server that needs none " +
		"with ANTHROPIC_BASE_URL"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if _, _, err := loadAgents(path+".not", server.Parts{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestModelHeaders: what the file says about a model's server arrives there, with values
// of the environment.
func TestModelHeaders(t *testing.T) {
	asked := make(chan http.Header, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},"+
			"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)
	env := map[string]string{"PROVIDER": strings.TrimPrefix(provider.URL, "http://"), "TEAM": "support", "TOKEN": "t0"}
	c := config(t)
	var err error
	c.Agents, _, err = loadAgents(written(t, `
agents:
  - name: a
    model: openai/x
    baseURL: http://${PROVIDER}/v1
    headers: {X-Team: "${TEAM}", Authorization: "Bearer ${TOKEN}"}
`), server.Parts{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if got := post(t, started(t, c), "t", "hi"); !strings.Contains(got, "Hello") {
		t.Errorf("the answer is %s", got)
	}
	if h := <-asked; h.Get("X-Team") != "support" || h.Get("Authorization") != "Bearer t0" {
		t.Errorf("the headers are %v", h)
	}
}

// TestValidateAgents: it needs no keys, and finds everything that would keep the server
// from starting.
func TestValidateAgents(t *testing.T) {
	agents, models, err := server.ValidateAgents(written(t,
		"agents:\n  - {name: a, model: openai/x, headers: {X: '${Y}'}, middleware: [errorTracking]}\n  - name: b\n"),
		server.Parts{Getenv: noEnv})
	if err != nil || len(agents) != 2 || !slices.Equal(models, []string{"openai/x", ""}) ||
		len(agents[0].Middleware) != 1 {
		t.Errorf("%+v, %q, %v", agents, models, err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"two states of one name": {"agents:\n  - name: a\n    middleware: [acme.one, acme.two]\n",
			`:3:5: agent "a": two states are named "acme.counter": server_test.counterV1 and ` +
				`server_test.counterOther; give each a name of its own`},
		"options": {"agents:\n  - name: a\n    middleware:\n      - circuitBreaker: {maxIdenticalCalls: -1}\n",
			":4:25: circuitBreaker: maxIdenticalCalls is -1: write 2 or more, or leave it out for 3"},
		"a budget without prices": {"agents:\n  - name: a\n    middleware:\n      - budget: {thread: {cost: 10.50}}\n",
			":4:17: budget: a limit of cost needs prices: write prices for your models, or limit tokens"},
		"a wrong price": {"prices:\n  openai/x: {input: 1, output: -2}\nagents:\n  - name: a\n",
			`:2:13: the price of "openai/x": "-2" is not an amount of money; write it like 10 or 2.50`},
	} {
		path := written(t, c.file)
		_, _, err := server.ValidateAgents(path, server.Parts{Getenv: noEnv,
			Middleware: []holdfast.MiddlewareKind{counting[counterV1]("acme.one"), counting[counterOther]("acme.two")}})
		if err == nil || err.Error() != path+c.want {
			t.Errorf("%s: got %v, want %s", name, err, path+c.want)
		}
	}
	if _, _, err := server.ValidateAgents(written(t,
		"prices: {openai/x: {input: 1, output: 2}}\nagents:\n  - name: a\n    middleware:\n      - budget: "+
			"{thread: {cost: 10.50}}\n"), server.Parts{Getenv: noEnv}); err != nil {
		t.Errorf("the file's prices are not those of the budget: %v", err)
	}
	if _, _, err := server.ValidateAgents("../holdfast.example.yaml", server.Parts{Getenv: noEnv}); err != nil {
		t.Errorf("the example: %v", err)
	}
}

// TestNoFile: without a file there is one agent.
func TestNoFile(t *testing.T) {
	agents, _, err := loadAgents("", server.Parts{Getenv: noEnv})
	if err != nil || len(agents) != 1 || agents[0].Name != "demo" || agents[0].Model == nil ||
		len(agents[0].Tools) != 8 {
		t.Errorf("%+v, %v", agents, err)
	}
	key := func(name string) string { return map[string]string{"OPENAI_API_KEY": "k"}[name] }
	agents, _, err = loadAgents("", server.Parts{Getenv: key, DemoJournal: &bytes.Buffer{}})
	if err != nil || agents[0].Name != "assistant" || agents[0].Model == nil || len(agents[0].Tools) != 8 {
		t.Errorf("with a key: %+v, %v", agents, err)
	}
	_, _, err = loadAgents("", server.Parts{Getenv: noEnv, DefaultModel: "openai/x"})
	if err == nil || !strings.HasPrefix(err.Error(), "the model x needs a key") {
		t.Errorf("without a key: %v", err)
	}
}

// TestDefaultModelOfGateway: a server between this one and OpenAI may have only the API that
// all of them have, and the models that it had.
func TestDefaultModelOfGateway(t *testing.T) {
	for at, want := range map[string]string{
		"https://gateway.example/v1": "openai/gpt-5-mini", "http://localhost:4000": "openai/gpt-5-mini",
		"https://openai.com.example/v1": "openai/gpt-5-mini", "%": "openai/gpt-5-mini",
		"": "responses/gpt-6-luna", "https://api.openai.com/v1/": "responses/gpt-6-luna",
		"https://eu.api.openai.com/v1": "responses/gpt-6-luna",
	} {
		if got := server.DefaultModel(func(name string) string {
			return map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": at}[name]
		}); got != want {
			t.Errorf("at %q the model is %s, want %s", at, got, want)
		}
	}
}

// TestDefaultModel: the model of agents that name none, by the keys that are there.
func TestDefaultModel(t *testing.T) {
	for keys, want := range map[string]string{"": "demo", "OPENAI_API_KEY": "responses/gpt-6-luna",
		"ANTHROPIC_API_KEY": "anthropic/claude-sonnet-5-5", "GEMINI_API_KEY": "gemini/gemini-3.8-flash",
		"OPENAI_API_KEY ANTHROPIC_API_KEY": "responses/gpt-6-luna"} {
		env := func(name string) string {
			if slices.Contains(strings.Fields(keys), name) {
				return "k"
			}
			return ""
		}
		if got := server.DefaultModel(env); got != want {
			t.Errorf("with %q: %s, want %s", keys, got, want)
		}
		agents, _, err := loadAgents("", server.Parts{Getenv: env})
		if err != nil {
			t.Fatal(err)
		}
		if named, ok := agents[0].Model.(interface{ ModelName() (string, string) }); ok {
			if provider, model := named.ModelName(); provider+"/"+
				model != strings.Replace(want, "responses/", "openai/", 1) {
				t.Errorf("with %q the model is %s of %s", keys, model, provider)
			}
		}
	}
}

// TestModelOfAnthropic: by its name in the file, through a proxy.
func TestModelOfAnthropic(t *testing.T) {
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String() + " " + r.Header.Get("X-Api-Key")
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

`)
	}))
	t.Cleanup(proxy.Close)
	env := map[string]string{"PROXY": proxy.URL, "ANTHROPIC_API_KEY": "k0"}
	c := config(t)
	var err error
	c.Agents, _, err = loadAgents(written(t, `
agents:
  - name: a
    model: anthropic/claude
    baseURL: http://anthropic.example
    proxy: ${PROXY}
`), server.Parts{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if got := post(t, started(t, c), "t", "hi"); !strings.Contains(got, "Hello") {
		t.Errorf("the answer is %s", got)
	}
	if got := <-asked; got != "http://anthropic.example/v1/messages k0" {
		t.Errorf("asked is %s", got)
	}
}

// TestModelOfResponses: by its name in the file.
func TestModelOfResponses(t *testing.T) {
	asked := make(chan string, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `data: {"type":"response.output_text.delta","output_index":0,"delta":"Hello"}

data: {"type":"response.completed","response":{"status":"completed"}}

`)
	}))
	t.Cleanup(provider.Close)
	env := map[string]string{"OPENAI_BASE_URL": provider.URL + "/v1", "OPENAI_API_KEY": "k0"}
	c := config(t)
	var err error
	c.Agents, _, err = loadAgents(written(t, `
agents:
  - name: a
    model: responses/gpt
`), server.Parts{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if got := post(t, started(t, c), "t", "hi"); !strings.Contains(got, "Hello") {
		t.Errorf("the answer is %s", got)
	}
	if got := <-asked; got != "/v1/responses Bearer k0" {
		t.Errorf("asked is %s", got)
	}
}

// TestModelOfGemini: by its name in the file.
func TestModelOfGemini(t *testing.T) {
	asked := make(chan string, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String() + " " + r.Header.Get("X-Goog-Api-Key")
		_, _ = io.WriteString(w, `data: {"candidates":[{"content":{"parts":[{"text":"Hello"}]},`+
			`"finishReason":"STOP"}]}`+"\n\n")
	}))
	t.Cleanup(provider.Close)
	env := map[string]string{"GEMINI_BASE_URL": provider.URL, "GOOGLE_API_KEY": "k0"}
	c := config(t)
	var err error
	c.Agents, _, err = loadAgents(written(t, `
agents:
  - name: a
    model: gemini/gemini-3-pro
`), server.Parts{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if got := post(t, started(t, c), "t", "hi"); !strings.Contains(got, "Hello") {
		t.Errorf("the answer is %s", got)
	}
	if got := <-asked; got != "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse k0" {
		t.Errorf("asked is %s", got)
	}
}

// TestModelTries: an agent's own number takes precedence over the server's.
func TestModelTries(t *testing.T) {
	for agent, want := range map[string]int{"a": 2, "b": 1} {
		calls := 0
		c := config(t)
		failing := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				calls++
				yield(holdfast.Delta{}, &holdfast.ModelError{Retryable: true, RetryAfter: 1, Err: errors.New("busy")})
			}
		})
		c.Agents = []holdfast.Agent{{Name: agent, Model: failing}}
		c.ModelTries, c.Limits = 2, map[string]server.Limits{"b": {ModelTries: 1}}
		if got := post(t, started(t, c), "t", "hi"); !strings.Contains(got, "RUN_ERROR") || calls != want {
			t.Errorf("agent %s: %d calls, want %d: %s", agent, calls, want, got)
		}
	}
}

// TestContinuationDecides: the server's own limit does not end a run if a person is
// asked instead.
func TestContinuationDecides(t *testing.T) {
	c := config(t)
	c.MaxIterations = 1
	c.Agents[0].Middleware = []holdfast.Middleware{
		middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 1}),
	}
	url := started(t, c)
	if got := post(t, url, "t", "tool"); !strings.Contains(got, "holdfast:continuation") ||
		strings.Contains(got, codes.MaxIterations) {
		t.Error(got)
	}
	if got := get(t, url+"/agents"); !strings.Contains(got, `"middleware":["holdfast.continuation"]`) ||
		strings.Contains(got, "maxIterations") {
		t.Error(got)
	}
}

// TestOwnBoundDecides: any middleware may take the place of the server's own limit, and
// one that only has the name of ours does not.
func TestOwnBoundDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		mw   holdfast.Middleware
		want string
	}{
		"a bound of one's own": {holdfast.Middleware{Name: "acme.bound", BoundsIterations: true}, "RUN_FINISHED"},
		"the name alone":       {holdfast.Middleware{Name: "holdfast.continuation"}, codes.MaxIterations},
	} {
		c := config(t)
		c.MaxIterations = 1
		c.Agents[0].Middleware = []holdfast.Middleware{tt.mw}
		if got := post(t, started(t, c), "t", "tool"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: want %s: %s", name, tt.want, got)
		}
	}
}

// TestLogHidesSecrets: no key reaches the server's log, from any writer.
func TestLogHidesSecrets(t *testing.T) {
	const key, badge = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "badge-4711"
	var log bytes.Buffer
	c := config(t)
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.RedactPatterns = []redaction.Pattern{{Name: "badge", Regexp: "badge-[0-9]+"}}
	c.Agents[0].Model = holdfast.ModelFunc(func(context.Context,
		*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{}, errors.New("refused the key "+key+" of "+badge))
		}
	})
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s.Handler())
	defer front.Close()
	post(t, front.URL, "t", "hi")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "refused the key") || strings.Contains(got, key) ||
		strings.Contains(got, badge) {
		t.Error(got)
	}
	c.RedactPatterns[0].Regexp = "("
	if _, err := server.New(c); err == nil || !strings.Contains(err.Error(), "Config.RedactPatterns cannot be used") {
		t.Errorf("an invalid pattern: %v", err)
	}
}

// TestToolsOnlyListed: an agent has these built-in tools if it lists them, and the agent of
// the demo does not have them.
func TestToolsOnlyListed(t *testing.T) {
	names := func(agents []holdfast.Agent) (all []string) {
		for _, tool := range agents[0].Tools {
			all = append(all, tool.Spec().Name)
		}
		return all
	}
	parts := server.Parts{
		DefaultModel: "demo",
		Models:       map[string]func(server.ModelSpec) (holdfast.Model, error){"demo": echo},
		Getenv:       noEnv,
	}
	agents, _, err := loadAgents(written(t, "agents: [{name: a, tools: [http_get, scratchpad]}]"), parts)
	if err != nil || !slices.Equal(names(agents), []string{"http_get", "scratchpad"}) {
		t.Errorf("%v, %v", names(agents), err)
	}
	if agents, _, err = loadAgents("", parts); err != nil || len(names(agents)) == 0 ||
		slices.Contains(names(agents), "http_get") || slices.Contains(names(agents), "scratchpad") {
		t.Errorf("the demo: %v, %v", names(agents), err)
	}
}
