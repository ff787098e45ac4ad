package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

var hello = holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		switch last := req.Messages[len(req.Messages)-1]; last.Text {
		case "panic":
			panic("secret of the model")
		case "tool":
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Name: "burn", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		default:
			yield(holdfast.Delta{Text: "hello", Finish: holdfast.FinishStop}, nil)
		}
	}
})

func config(t *testing.T) server.Config {
	burn := holdfast.NewTool("burn", "panics", func(context.Context, struct{}) (string, error) {
		panic("secret of the tool")
	})
	return server.Config{
		Store: "memory:", Addr: "localhost:0", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Agents: []holdfast.Agent{{Name: "a", Model: hello, Tools: []holdfast.Tool{burn}}},
	}
}

// TestConfigMistakes: each mistake is found before anything runs, and the text says
// what to do.
func TestConfigMistakes(t *testing.T) {
	for want, change := range map[string]func(*server.Config){
		"set Config.Agents":     func(c *server.Config) { c.Agents = nil },
		"set Agent.Name":        func(c *server.Config) { c.Agents[0].Name = "" },
		"set Agent.Model":       func(c *server.Config) { c.Agents[0].Model = nil },
		"Fallbacks that is nil": func(c *server.Config) { c.Agents[0].Fallbacks = []holdfast.Model{nil} },
		"two agents are named":  func(c *server.Config) { c.Agents = append(c.Agents, c.Agents[0]) },
		"two tools named": func(c *server.Config) {
			c.Agents[0].Tools = append(c.Agents[0].Tools, c.Agents[0].Tools[0])
		},
		"use per_iteration":                    func(c *server.Config) { c.CheckpointFrequency = "hourly" },
		"at least 100ms":                       func(c *server.Config) { c.Lease = time.Millisecond },
		"listens on loopback only":             func(c *server.Config) { c.Addr = "0.0.0.0:8080" },
		"write host:port":                      func(c *server.Config) { c.Addr = "8080" },
		"use file:FOLDER":                      func(c *server.Config) { c.Store = "floppy:a" },
		"unknown Client.Import":                func(c *server.Config) { c.Agents[0].Client.Import = "user" },
		"use system, user, drop":               func(c *server.Config) { c.Agents[0].Client.Context = "none" },
		"Client.Instructions":                  func(c *server.Config) { c.Agents[0].Client.Instructions = "all" },
		"use https, any, none":                 func(c *server.Config) { c.Agents[0].Client.MediaURLs = "http" },
		"failover:N":                           func(c *server.Config) { c.Durability = "machine" },
		"only possible with replicas of Redis": func(c *server.Config) { c.Durability = "failover" },
		"the program's own store decides": func(c *server.Config) {
			c.Durability, c.OpenStore = "failover", func() (store.Store, error) { return nil, errors.New("not opened") }
		},
		"has no path":       func(c *server.Config) { c.Store = "file:" },
		"lets any page use": func(c *server.Config) { c.AllowedOrigins = []string{"*"} },
		"configure API keys, or list the origins": func(c *server.Config) {
			c.AllowAnonymous, c.AllowedOrigins = true, []string{"*"}
		},
		"the host \"http://a\" cannot be used":   func(c *server.Config) { c.Hosts = []string{"http://a"} },
		"OnRevision \"later\": use adopt or pin": func(c *server.Config) { c.Agents[0].OnRevision = "later" },
		"Config.OnRevision is \"wait\"":          func(c *server.Config) { c.OnRevision = "wait" },
		"a pin timeout of -1s is not possible":   func(c *server.Config) { c.PinTimeout = -time.Second },
		"Agent.Approvals is user or approver": func(c *server.Config) {
			c.Agents[0].Approvals = access.RoleServerOperator
		},
	} {
		c := config(t)
		change(&c)
		if _, err := server.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func post(t *testing.T, url, thread, text string) string {
	t.Helper()
	body := fmt.Sprintf(`{"threadId":%q,"runId":"r","protocolVersion":"1.0","messages":[{"id":"m",`+
		`"role":"user","content":%q}]}`, thread, text)
	res, err := http.Post(url+"/runs", "application/json", strings.NewReader(body))
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

// TestStartAndShutdown: a server serves until it is shut down, and leaves nothing behind.
func TestStartAndShutdown(t *testing.T) {
	c := config(t)
	c.Store = "file:" + filepath.Join(t.TempDir(), "x", "data")
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := post(t, "http://"+s.Addr(), "t", "hi"); !strings.Contains(got, `"delta":"hello"`) ||
		!strings.Contains(got, "RUN_FINISHED") {
		t.Error(got)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + s.Addr() + "/healthz"); err == nil {
		t.Error("the server still listens")
	}
}

// TestPanics: a panic of a model ends the run with a safe text, and a panic of a tool
// becomes its result; the panic's own text goes only to the log.
func TestPanics(t *testing.T) {
	var log bytes.Buffer
	c := config(t)
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	model, tool := post(t, h.URL, "t1", "panic"), post(t, h.URL, "t2", "tool")
	h.CloseClientConnections()
	h.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(model, "RUN_ERROR") || strings.Contains(model, "secret") {
		t.Error(model)
	}
	if !strings.Contains(tool, "TOOL_CALL_RESULT") || !strings.Contains(tool, "RUN_FINISHED") ||
		strings.Contains(tool, "secret") {
		t.Error(tool)
	}
	for _, want := range []string{"secret of the model", "secret of the tool"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

// TestAuthenticate: with authentication, a thread belongs to the user who started it.
func TestAuthenticate(t *testing.T) {
	c := config(t)
	c.Addr = "127.0.0.1:0"
	c.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
		user := r.Header.Get("X-User")
		if user == "" {
			return holdfast.Principal{}, holdfast.Errorf(codes.NotFound, "who are you?").WithHint("send X-User")
		}
		return holdfast.Principal{Tenant: "acme", User: user}, nil
	}
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	ask := func(user, method, path, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("X-User", user)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	input := `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}]}`
	if code, body := ask("", "POST", "/runs", input); code != 404 {
		t.Errorf("nobody: %d %s", code, body)
	}
	if code, body := ask("alice", "POST", "/runs", input); code != 200 {
		t.Fatalf("alice: %d %s", code, body)
	}
	for _, path := range []string{"/threads/t", "/threads/t/messages", "/threads/t/stream",
		"/threads/t/runs/r/events"} {
		if code, _ := ask("alice", "GET", path, ""); code != 200 {
			t.Errorf("alice, %s: %d", path, code)
		}
		if code, _ := ask("bob", "GET", path, ""); code != 404 {
			t.Errorf("bob, %s: %d", path, code)
		}
	}
	if _, body := ask("bob", "GET", "/threads", ""); strings.Contains(body, `"t"`) {
		t.Errorf("bob lists %s", body)
	}
}
