package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	models "github.com/holdfast-agents/holdfast/model"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// provider is a server with OpenAI's API whose model orders a rope, and then says so.
func provider(t *testing.T) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer sk-test" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunks := []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"place_order",` +
				`"arguments":"{\"item\":\"rope\",\"cents\":990}"}}]},"finish_reason":"tool_calls"}]}`,
		}
		if bytes.Contains(body, []byte(`"role":"tool"`)) {
			chunks = []string{
				`{"choices":[{"delta":{"content":"Your rope "}}]}`,
				`{"choices":[{"delta":{"content":"is on its way."},"finish_reason":"stop"}]}`,
			}
		}
		chunks = append(chunks, `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}}`)
		for _, c := range append(chunks, "[DONE]") {
			_, _ = io.WriteString(w, "data: "+c+"\n\n")
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-test")
}

// TestTheProgram: an order without HTTP, and then the store without a server.
func TestTheProgram(t *testing.T) {
	provider(t)
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"ask", "I need a rope"}, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "calls place_order\napproved: ") ||
		!strings.HasSuffix(got, "Your rope is on its way.\n") {
		t.Errorf("it says %q", got)
	}
	out.Reset()
	if err := run(t.Context(), []string{"check"}, &out); err != nil ||
		out.String() != "1 threads checked, 0 problems\n" {
		t.Errorf("check: %q, %v", out.String(), err)
	}
}

// TestModel: which model it is, and that it says what kind of failure it was.
func TestModel(t *testing.T) {
	keys := []string{"OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"}
	for i, want := range []string{"openai/qwen3", "anthropic/claude-sonnet-5-5", "gemini/gemini-3.8-flash",
		"openai/gpt-6-luna"} {
		for n, key := range keys {
			value := ""
			if n >= i {
				value = "https://localhost"
			}
			t.Setenv(key, value)
		}
		m, err := model()
		if err != nil {
			t.Fatal(err)
		}
		named, ok := m.(interface{ ModelName() (string, string) })
		if !ok {
			t.Fatalf("a %T", m)
		}
		if provider, name := named.ModelName(); provider+"/"+name != want {
			t.Errorf("%s of %s, want %s", name, provider, want)
		}
	}
	provider(t)
	t.Setenv("OPENAI_API_KEY", "another")
	m, err := model()
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.Stream(t.Context(), &holdfast.ModelRequest{}) {
		var failed *holdfast.ModelError
		if !errors.As(err, &failed) || failed.Kind != failure.Auth {
			t.Errorf("a wrong key: %v", err)
		}
	}
}

// TestServe: the server says how it is set up, and ends when it is told to.
func TestServe(t *testing.T) {
	provider(t)
	t.Chdir(t.TempDir())
	t.Setenv("ADDR", "localhost:0")
	ctx, cancel := context.WithCancel(t.Context())
	out := &banner{written: cancel}
	if err := run(ctx, []string{"serve"}, out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http://localhost:", "shop", "machine"} {
		if !strings.Contains(out.text.String(), want) {
			t.Errorf("the banner does not say %q:\n%s", want, out.text.String())
		}
	}
}

// banner calls written once something was written to it.
type banner struct {
	text    bytes.Buffer
	written func()
}

func (b *banner) Write(p []byte) (int, error) {
	defer b.written()
	return b.text.Write(p)
}

// TestWhoIsLetIn: keys, an identity provider, or both.
func TestWhoIsLetIn(t *testing.T) {
	_, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_ISSUER", "https://id.example.com/")
	for _, keys := range []string{"", entry} {
		for _, jwks := range []string{"", "https://id.example.com/keys"} {
			t.Setenv("SHOP_KEYS", keys)
			t.Setenv("SHOP_JWKS", jwks)
			var cfg server.Config
			if err := letIn(&cfg); err != nil {
				t.Errorf("keys %t, provider %t: %v", keys != "", jwks != "", err)
				continue
			}
			if guarded := keys+jwks != ""; (cfg.Authenticate != nil) != guarded || (cfg.Authorize != nil) != guarded {
				t.Errorf("keys %t, provider %t: %+v", keys != "", jwks != "", cfg)
				continue
			}
			if cfg.Authenticate == nil {
				continue
			}
			_, err := cfg.Authenticate(httptest.NewRequest(http.MethodGet, "/threads", nil))
			if holdfast.AsError(err).Code != codes.Unauthenticated {
				t.Errorf("keys %t, provider %t: nobody in particular: %v", keys != "", jwks != "", err)
			}
		}
	}
}

// TestTheServer: keys, the page, and the metrics of server, shop and store in one
// registry.
func TestTheServer(t *testing.T) {
	provider(t)
	t.Chdir(t.TempDir())
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_KEYS", entry)
	registry := prometheus.NewRegistry()
	cfg, err := config(&warehouse{}, registry)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	get := func(path, key string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		s.Handler().ServeHTTP(w, r)
		return w
	}
	if err := cfg.Authorize(t.Context(), holdfast.Principal{Tenant: "acme", User: "alice"}, access.Delete,
		""); err == nil {
		t.Error("a customer may delete orders")
	}
	if err := cfg.Authorize(t.Context(), holdfast.Principal{Tenant: "acme", User: "alice"}, access.Run,
		"shop"); err != nil {
		t.Errorf("a customer may not order: %v", err)
	}
	if w := get("/threads", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a key: %d", w.Code)
	}
	if w := get("/", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<html") {
		t.Errorf("the page: %d", w.Code)
	}
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	if err := ask(t.Context(), s, alice, "t1", "I need a rope", io.Discard); err != nil {
		t.Fatal(err)
	}
	w := get("/threads/t1/state", key)
	var body struct {
		MiddlewareState struct {
			States map[string]json.RawMessage `json:"states"`
		} `json:"middlewareState"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil ||
		string(body.MiddlewareState.States["shop.spent"]) != `{"cents":990}` {
		t.Errorf("%d %s %v", w.Code, w.Body, err)
	}
	for _, line := range []string{`holdfast_runs_total{agent="shop",outcome="success"} 1`,
		`shop_orders_total{result="success"} 1`, `shop_commits_total{result="ok"} `} {
		// A run counts as ended a moment after its last event was shown.
		await(t, line+" in /metrics", func() bool {
			return strings.Contains(get("/metrics", "").Body.String(), "\n"+line)
		})
	}
}

// TestAllowance: what a thread has spent survives a crash, and the rest is all it gets.
func TestAllowance(t *testing.T) {
	order := func(cents string) agenttest.Turn {
		return agenttest.Call("place_order", `{"item":"rope","cents":`+cents+`}`)
	}
	h := agenttest.New(t, agenttest.Config{
		Model:      agenttest.Say(order("700"), agenttest.Text("done"), order("400"), agenttest.Text("too much")),
		Tools:      []holdfast.Tool{PlaceOrder(&warehouse{})},
		Middleware: []holdfast.Middleware{Allowance(1000)},
	})
	if r := h.Run("a rope, please"); len(r.Started) != 1 {
		t.Errorf("started %v", r.Started)
	}
	h.Restart(Allowance(1000)) // the process dies; the next one has only the store
	r := h.Run("another one")
	if len(r.Started) != 0 || !strings.Contains(r.Results()["call_2"], "only 300 cents are left") {
		t.Errorf("started %v, results %v", r.Started, r.Results())
	}
	if got := agenttest.State(h, spent); got.Cents != 700 {
		t.Errorf("spent %d, want 700", got.Cents)
	}
}

// TestStore: the store passes the suite that every store passes.
func TestStore(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite takes some seconds")
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		inner, err := offline.Open(offline.Location{URL: t.TempDir() + "/shop", Create: true})
		if err != nil {
			t.Fatal(err)
		}
		s := newCountingStore(inner, prometheus.NewRegistry())
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}, storetest.Options{})
}

// TestSmall builds the smallest program and asks it for its agents.
func TestSmall(t *testing.T) {
	provider(t)
	if text, err := os.ReadFile("small/main.go"); err != nil || bytes.Count(text, []byte("\n")) > 40 {
		t.Errorf("it has more than 40 lines, %v", err)
	}
	program := filepath.Join(t.TempDir(), "small")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./small").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ADDR="+addr, "HOLDFAST_API_KEYS="+entry)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	}()
	await(t, "the server to listen", func() bool {
		res, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/agents", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK ||
		!bytes.Contains(body, []byte(`"weather"`)) {
		t.Errorf("%d %s %v", res.StatusCode, body, err)
	}
}

// TestOptionsOfAllProviders: the same options make a model of each provider.
func TestOptionsOfAllProviders(t *testing.T) {
	o := models.Options{Model: "m", Key: "k", Timeout: time.Minute}
	for name, made := range map[string]func(models.Options) (holdfast.Model, error){
		"anthropic": func(o models.Options) (holdfast.Model, error) { return anthropic.New(o) },
		"gemini":    func(o models.Options) (holdfast.Model, error) { return gemini.New(o) },
		"openai":    func(o models.Options) (holdfast.Model, error) { return openai.New(o) },
		"responses": func(o models.Options) (holdfast.Model, error) { return responses.New(o) },
	} {
		if m, err := made(o); err != nil || m == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEveryPublicPackage: this module, with its tests, imports every public package of
// Holdfast.
func TestEveryPublicPackage(t *testing.T) {
	const root = "github.com/holdfast-agents/holdfast"
	list := func(args ...string) []string {
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(string(out)))
	}
	used := map[string]bool{}
	for _, name := range list("-f", "{{.Imports}} {{.TestImports}}", "./...") {
		used[name] = true
	}
	for _, name := range list("-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, root+"/...") {
		ours := strings.Contains(name, "/internal/") || strings.HasPrefix(name, root+"/bench") ||
			strings.HasPrefix(name, root+"/examples/dojo/")
		if !ours && !used[name] {
			t.Errorf("%s is not used", name)
		}
	}
}

// await waits for what happens in another process, or a moment after a stream has ended.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); !so(); {
		select {
		case <-tick:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
