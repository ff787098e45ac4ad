package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/server"
)

// TestModelsTellNoSecrets: neither the key of a model nor the password of its proxy is in
// the stream, in the thread, in metrics or in the log, even if the provider repeats them;
// what it says, and where it is, is in the log only.
func TestModelsTellNoSecrets(t *testing.T) {
	t.Parallel()
	const key, password = "sk-very-secret-key", "proxy-password"
	const prompt, place = "my private question", "models.internal.example"
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"error":{"type":"overloaded_error","message":"%s via user:%s for %s: %s"}}`,
			r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"), password, r.URL, prompt)
	}))
	defer proxy.Close()
	through := func(addr string) string { return "http://user:" + password + "@" + addr }
	first := must(anthropic.New(anthropic.Options{
		Model:   "m1",
		Key:     key,
		BaseURL: "http://" + place,
		Proxy:   through(strings.TrimPrefix(proxy.URL, "http://")),
	}))(t)
	second := must(openai.New(openai.Options{Model: "m2", Key: key, BaseURL: "http://" + place + "/v1",
		Proxy: through("127.0.0.1:1")}))(t)
	var log bytes.Buffer
	c := server.Config{
		Store:      "memory:",
		Addr:       "localhost:0",
		ModelTries: 1,
		Log:        slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Agents:     []holdfast.Agent{{Name: "a", Model: first, Fallbacks: []holdfast.Model{second}}},
	}
	s := must(server.New(c))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	get := func(method, path, body string) string {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1234"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Body.String()
	}
	stream := get("POST", "/runs", `{"threadId":"t","runId":"r1","protocolVersion":"1.0","messages":[{"id":"u1",`+
		`"role":"user","content":"`+prompt+
		`"}]}`)
	shown := stream + get("GET", "/threads/t/runs", "") + get("GET", "/metrics", "")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`"name":"holdfast.fallback"`, `"code":"model_failed"`, "Try again in a moment.",
		`holdfast_model_failures_total{kind="overloaded",model="m1",provider="anthropic"} 1`} {
		if !strings.Contains(shown, want) {
			t.Errorf("it lacks %s:\n%s", want, stream)
		}
	}
	for _, secret := range []string{key, password, place, prompt} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is shown:\n%s", secret, stream)
		}
	}
	for _, secret := range []string{key, password} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is in the log:\n%s", secret, &log)
		}
	}
	if got := strings.Count(log.String(), `msg="model call failed"`); got != 2 {
		t.Errorf("%d lines of failed calls:\n%s", got, &log)
	}
}
