package server_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/web"
)

// greeter is a model that greets.
func greeter(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		yield(holdfast.Delta{Text: "Good morning.", Finish: holdfast.FinishStop}, nil)
	}
}

// exampleConfig has one agent, and keeps nothing.
func exampleConfig() server.Config {
	return server.Config{
		Store:  "memory:",
		Agents: []holdfast.Agent{{Name: "greeter", Model: holdfast.ModelFunc(greeter)}},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// A program runs an agent without HTTP and reads the thread afterwards.
func ExampleServer_Run() {
	s, err := server.New(exampleConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, who := context.Background(), server.LocalPrincipal()
	if err := s.StartEngine(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range s.Run(ctx, who, server.Input{Thread: "shop", Text: "hello"}) {
		if err != nil {
			fmt.Println(err) // watching ended; the run may continue
			break
		}
		fmt.Println(event.Type)
	}
	messages, err := s.Messages(ctx, who, "shop")
	fmt.Println(len(messages), "messages,", err)
	if err := s.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// RUN_STARTED
	// TEXT_MESSAGE_START
	// TEXT_MESSAGE_CONTENT
	// TEXT_MESSAGE_END
	// RUN_FINISHED
	// 2 messages, <nil>
}

// A server with API keys and the page, as part of another server.
func ExampleServer_Handler() {
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := apikey.Parse(entry, os.ReadFile)
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := exampleConfig()
	cfg.Authenticate, cfg.UI = keys.Authenticate, web.Handler()
	s, err := server.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.StartEngine(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.Handler())

	for _, authorization := range []string{"", "Bearer " + key} {
		r := httptest.NewRequest(http.MethodGet, "/threads", nil)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(page.Header().Get("Content-Type"))
	if err := s.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 401
	// 200
	// text/html; charset=utf-8
}

// An observer is told what the engine does.
func ExampleConfig_observer() {
	cfg := exampleConfig()
	cfg.Observer = observe.Observer{
		RunEnded: func(at holdfast.Iteration, outcome holdfast.Outcome, code string, took time.Duration) {
			fmt.Println(at.Agent, "on", at.Thread, "ended with", outcome)
		},
	}
	s, err := server.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := s.StartEngine(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, err := range s.Run(ctx, server.LocalPrincipal(), server.Input{Thread: "shop", Text: "hello"}) {
		if err != nil {
			fmt.Println(err)
		}
	}
	if err := s.Shutdown(ctx); err != nil { // waits until the run is over
		fmt.Println(err)
	}
	// Output:
	// greeter on shop ended with success
}
