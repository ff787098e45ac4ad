package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/server"
)

// chat is a server with one agent, and what it logs.
type chat struct {
	t    *testing.T
	s    *server.Server
	http *httptest.Server
	log  *lockedBuffer
	sent int
}

// lockedBuffer is a buffer that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newChat starts a server with an agent; store is a store's URL.
func newChat(t *testing.T, store string, agent holdfast.Agent) *chat {
	t.Helper()
	c := &chat{t: t, log: &lockedBuffer{}}
	if agent.Name == "" {
		agent.Name = "a"
	}
	var err error
	c.s, err = server.New(server.Config{
		Store: store, Agents: []holdfast.Agent{agent},
		Log: slog.New(middleware.RedactLogs(slog.NewTextHandler(c.log, nil), middleware.RedactionOptions{})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.http = httptest.NewServer(c.s.Handler())
	return c
}

func (c *chat) close() {
	c.http.CloseClientConnections()
	c.http.Close()
	if err := c.s.Shutdown(context.WithoutCancel(c.t.Context())); err != nil {
		c.t.Error(err)
	}
}

// say posts a person's message to the thread "t" and returns the stream.
func (c *chat) say(text string) string {
	c.t.Helper()
	c.sent++
	body := fmt.Sprintf(`{"threadId":"t","runId":"r%d-%p","protocolVersion":"1.0","messages":[{"id":"m%d-%p","role":"user","content":%q}]}`, c.sent, c, c.sent, c, text)
	res, err := http.Post(c.http.URL+"/runs", "application/json", strings.NewReader(body))
	return c.read(res, err)
}

func (c *chat) get(path string) string {
	c.t.Helper()
	res, err := http.Get(c.http.URL + path)
	return c.read(res, err)
}

func (c *chat) read(res *http.Response, err error) string {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// scripted is a model that answers each call by what a function says.
func scripted(f func(req *holdfast.ModelRequest) []holdfast.Delta) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, d := range f(req) {
				if !yield(d, nil) {
					return
				}
			}
		}
	})
}

// callThenSay is a model that calls a tool once for each message of the person, and
// then says what it got.
func callThenSay(tool string) holdfast.Model {
	return scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == holdfast.RoleTool {
			return []holdfast.Delta{{Text: "Got: "}, {Text: last.Text}, {Finish: holdfast.FinishStop}}
		}
		return []holdfast.Delta{{Call: &holdfast.CallDelta{Name: tool, Arguments: "{}"}, Finish: holdfast.FinishToolCalls}}
	})
}

// TestNothingOfASecretIsLeft: a tool returns one, the model says another in pieces, an
// error has a third. None is in the stream, in the history or in the log.
func TestNothingOfASecretIsLeft(t *testing.T) {
	fetch := holdfast.NewTool("fetch", "", func(context.Context, struct{}) (string, error) { return "the key: " + secrets["aws"], nil })
	model := scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Role == holdfast.RoleTool:
			if strings.Contains(last.Text, secrets["aws"]) {
				t.Error("the model sees the secret")
			}
			return pieces("It says "+secrets["jwt"]+".", 5)
		default:
			return []holdfast.Delta{{Reasoning: "I know " + secrets["github"][:9]}, {Reasoning: secrets["github"][9:]},
				{Call: &holdfast.CallDelta{Name: "fetch", Arguments: "{}"}, Finish: holdfast.FinishToolCalls}}
		}
	})
	c := newChat(t, "memory:", holdfast.Agent{Model: model, Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{middleware.Redaction(middleware.RedactionOptions{})}})
	defer c.close()
	stream := c.say("go")
	history := c.get("/threads/t/messages")
	for name, text := range map[string]string{"stream": stream, "history": history, "log": c.log.String()} {
		for _, secret := range []string{"aws", "jwt", "github"} {
			if strings.Contains(text, secrets[secret]) || strings.Contains(text, secrets[secret][10:]) {
				t.Errorf("%s is in the %s: %s", secret, name, text)
			}
		}
	}
	for _, want := range []string{
		`"content":"the key: [redacted:api_key]"`, "RUN_FINISHED",
		`{"where":["model","tool:fetch"],"names":["api_key"],"count":2}`, `{"where":["model"],"names":["jwt"],"count":1}`,
	} {
		if !strings.Contains(stream, want) {
			t.Errorf("no %s in %s", want, stream)
		}
	}
	if !strings.Contains(history, "It says [redacted:jwt].") || strings.Count(stream, `"name":"holdfast.redacted"`) != 2 {
		t.Errorf("%s\n%s", history, stream)
	}
}

// TestASecretInAnError: it is neither in the stream nor in the log.
func TestASecretInAnError(t *testing.T) {
	fetch := holdfast.NewTool("fetch", "", func(context.Context, struct{}) (string, error) {
		return "", fmt.Errorf("cannot reach %s", "redis://u:"+secrets["url_password"]+"@h")
	})
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Iteration == 0 {
				yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "fetch", Arguments: "{}"}, Finish: holdfast.FinishToolCalls}, nil)
				return
			}
			yield(holdfast.Delta{}, &holdfast.ModelError{Public: "Key " + secrets["aws"] + " is refused.", Err: fmt.Errorf("401 for %s", secrets["aws"])})
		}
	})
	c := newChat(t, "memory:", holdfast.Agent{Model: model, Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{middleware.Redaction(middleware.RedactionOptions{})}})
	defer c.close()
	stream := c.say("go")
	if !strings.Contains(stream, "redis://u:[redacted:url_password]@h") || !strings.Contains(stream, "Key [redacted:api_key] is refused.") {
		t.Error(stream)
	}
	if log := c.log.String(); strings.Contains(stream+log, secrets["aws"]) || strings.Contains(stream+log, secrets["url_password"]) || !strings.Contains(log, "401 for [redacted:api_key]") {
		t.Errorf("%s\n%s", stream, log)
	}
}
