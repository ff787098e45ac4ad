// Command program is an agent server that uses Holdfast as a library: a tool and a
// middleware of its own, a model of any provider, a store of its own, callers with keys or
// tokens, the page, metrics in a registry of its own, and runs without HTTP.
//
//	go run . serve           serves on localhost:8080
//	go run . ask TEXT        runs TEXT on the thread "shop", without HTTP
//	go run . check           looks for damage in the store, without a server
//
// The model is the one at OPENAI_BASE_URL, such as http://localhost:11434/v1 for Ollama, or
// that of ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY. docs/embedding.md explains
// this program piece by piece.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/web"
)

// storeFolder is where the threads are kept.
const storeFolder = "data/shop"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "check" {
		return check(ctx, out)
	}
	cfg, err := config(&warehouse{}, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	if len(args) > 1 && args[0] == "ask" {
		return askOnce(ctx, s, strings.Join(args[1:], " "), out)
	}
	return serve(ctx, s, out)
}

// serve serves until ctx is done, and then lets running work reach its next boundary.
func serve(ctx context.Context, s *server.Server, out io.Writer) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.Banner(out); err != nil {
		return err
	}
	<-ctx.Done()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.GracePeriod)
	defer cancel()
	return s.Shutdown(grace)
}

// model is the one that is served at OPENAI_BASE_URL, by Ollama for example, or else that of
// the first provider whose key is in the environment.
func model() (holdfast.Model, error) {
	switch {
	case os.Getenv("OPENAI_BASE_URL") != "":
		return openai.New(openai.Options{Model: "qwen3", Params: map[string]any{"temperature": 0.2}})
	case os.Getenv("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Options{Model: "claude-sonnet-5-5"})
	case os.Getenv("GEMINI_API_KEY") != "":
		return gemini.New(gemini.Options{Model: "gemini-3.8-flash"})
	}
	return responses.New(responses.Options{Model: "gpt-6-luna",
		Params: map[string]any{"reasoning": map[string]any{"effort": "low"}}})
}

// config is the whole server. The metrics of the server and those of the shop are in one
// registry.
func config(w Warehouse, registry *prometheus.Registry) (server.Config, error) {
	model, err := model()
	if err != nil {
		return server.Config{}, err
	}
	agent := holdfast.Agent{
		Name:         "shop",
		Instructions: "You order what people ask for.",
		Model:        model,
		Tools:        []holdfast.Tool{PlaceOrder(w)},
		State:        &sharedstate.Options{Show: "paths", Paths: []string{"/basket"}}, // what the page shows
		Middleware: []holdfast.Middleware{
			redaction.New(redaction.Options{}),
			middleware.CircuitBreaker(middleware.CircuitBreakerOptions{}),
			budget.New(budget.Options{Thread: budget.Limit{Tokens: 200_000}}),
			permission.New(permission.Options{Rules: []permission.Rule{{Tool: "place_order", Then: permission.Ask}}}),
			Allowance(100_00),
		},
	}
	cfg := server.Config{
		Addr:       os.Getenv("ADDR"), // by default localhost:8080
		Agents:     []holdfast.Agent{agent},
		UI:         web.Handler(),
		Registerer: registry, // gets the server's metrics
		Gatherer:   registry, // is what GET /metrics shows
		Observer:   orderMetrics(registry),
		OpenStore: func() (store.Store, error) {
			inner, err := offline.Open(offline.Location{URL: storeFolder, Create: true})
			if err != nil {
				return nil, err
			}
			return newCountingStore(inner, registry), nil
		},
	}
	err = letIn(&cfg)
	return cfg, err
}

// orderMetrics counts the orders by how they ended.
func orderMetrics(registry prometheus.Registerer) observe.Observer {
	orders := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shop_orders_total", Help: "Orders by result."},
		[]string{"result"})
	registry.MustRegister(orders)
	return observe.Observer{
		ToolCalled: func(_ holdfast.Iteration, tool string, result observe.ToolResult, _ time.Duration) {
			if tool == "place_order" {
				orders.WithLabelValues(string(result)).Inc()
			}
		},
	}
}

// askOnce runs one message without a listener.
func askOnce(ctx context.Context, s *server.Server, text string, out io.Writer) error {
	if err := s.StartEngine(ctx); err != nil {
		return err
	}
	err := ask(ctx, s, holdfast.Principal{Tenant: "default", User: "clerk"}, "shop", text, out)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.GracePeriod)
	defer cancel()
	if stopped := s.Shutdown(grace); err == nil {
		err = stopped
	}
	return err
}

// check looks for damage in the store. No server may have it open.
func check(ctx context.Context, out io.Writer) error {
	db, err := offline.Open(offline.Location{URL: storeFolder})
	if err != nil {
		return err
	}
	defer db.Close()
	done, err := offline.Check(ctx, db, nil, func(p offline.Problem) { fmt.Fprintln(out, p.Key, p.What, p.Detail) })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d threads checked, %d problems\n", done.Threads, done.Problems)
	return nil
}
