package hooktest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// A server with one agent that is talked to over HTTP, as a client would, and can be
// restarted with the same store.

// Server is a server with one agent. It ends with its test.
type Server struct {
	t    *testing.T
	cfg  server.Config
	log  *lockedBuffer
	url  string
	stop func()
}

// Serve starts a server with an agent, whose name is "a" if it has none. Threads are kept
// in memory unless a change says otherwise.
func Serve(t *testing.T, agent holdfast.Agent, changes ...func(*server.Config)) *Server {
	t.Helper()
	s := &Server{t: t, log: &lockedBuffer{}}
	agent.Name = cmp.Or(agent.Name, "a")
	s.cfg = server.Config{
		Store:         "memory:",
		MaxIterations: 10_000,
		Agents:        []holdfast.Agent{agent},
		Log:           slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, change := range changes {
		change(&s.cfg)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// In has a server keep its threads in the store of that URL.
func In(store string) func(*server.Config) {
	return func(c *server.Config) { c.Store = store }
}

// Sharing has servers keep their threads in a store that none of them closes.
func Sharing(db store.Store) func(*server.Config) {
	return func(c *server.Config) { c.OpenStore = func() (store.Store, error) { return kept{db}, nil } }
}

// kept is a store that outlives its servers.
type kept struct{ store.Store }

func (kept) Close() error { return nil }

func (s *Server) start() {
	s.t.Helper()
	made, err := server.New(s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := made.StartEngine(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	h := httptest.NewServer(made.Handler())
	s.url = h.URL
	s.stop = sync.OnceFunc(func() {
		h.CloseClientConnections()
		h.Close()
		if err := made.Shutdown(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
}

// Restart ends the server and starts another one with the same store.
func (s *Server) Restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// Log returns what has been logged.
func (s *Server) Log() string { return s.log.String() }

// Post starts a run and returns its stream after it has ended. Without a body the run
// begins with a message of the user. It may be called from any goroutine.
func (s *Server) Post(thread, run string, body map[string]any) Stream {
	s.t.Helper()
	if body == nil {
		body = map[string]any{"messages": []any{map[string]any{"id": "m" + run, "role": "user", "content": "go"}}}
	}
	body["threadId"], body["runId"], body["protocolVersion"] = thread, run, "1.0"
	if body["messages"] == nil {
		body["messages"] = []any{}
	}
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
		return Stream{}
	}
	text := s.send(http.Post(s.url+"/runs", "application/json", bytes.NewReader(data)))
	return s.read(text)
}

// Get returns what is at a path.
func (s *Server) Get(path string) string {
	s.t.Helper()
	return s.send(http.Get(s.url + path))
}

// Checkpoint returns the id of a thread's newest checkpoint.
func (s *Server) Checkpoint(thread string) string {
	s.t.Helper()
	var list struct{ Checkpoints []struct{ ID string } }
	text := s.Get("/threads/" + thread + "/checkpoints")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Checkpoints) == 0 {
		s.t.Fatalf("%s, %v", text, err)
	}
	return list.Checkpoints[0].ID
}

// Fork branches a thread off another one, from its newest checkpoint.
func (s *Server) Fork(from, to string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"threadId":%q,"checkpointId":%q}`, to, s.Checkpoint(from))
	s.send(http.Post(s.url+"/threads/"+from+"/fork", "application/json", strings.NewReader(body)))
}

// Rewind takes a thread back to a checkpoint.
func (s *Server) Rewind(thread, checkpoint string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"checkpointId":%q}`, checkpoint)
	s.send(http.Post(s.url+"/threads/"+thread+"/rewind", "application/json", strings.NewReader(body)))
}

// Delete deletes a thread.
func (s *Server) Delete(thread string) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodDelete, s.url+"/threads/"+thread, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(http.DefaultClient.Do(req))
}

// send returns the body of a response, which has to be a success.
func (s *Server) send(res *http.Response, err error) string {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		s.t.Errorf("%d %v %s", res.StatusCode, err, text)
	}
	return string(text)
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

// RunAgent runs an agent on a server of its own and returns the stream, or the error. It
// is for examples, which have no test.
func RunAgent(agent holdfast.Agent, text string) string {
	s, err := server.New(
		server.Config{Store: "memory:", Agents: []holdfast.Agent{agent}, Log: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		return err.Error()
	}
	ctx := context.Background()
	if err := s.StartEngine(ctx); err != nil {
		return err.Error()
	}
	defer func() { _ = s.Shutdown(ctx) }()
	body := fmt.Sprintf(`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":%q}]}`, text)
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/runs", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	return w.Body.String()
}
