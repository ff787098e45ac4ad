// Command dojo serves an agent for each feature of the AG-UI dojo, to the page beside it and
// to any client of AG-UI.
//
//	go run ./examples/dojo
//
// The agents are answered by the scripted demo model, which needs no key, or by the model that
// -model names:
//
//	go run ./examples/dojo -model anthropic/claude-sonnet-5-5
//
// features has one file for each feature that needs code on the server. Kill the server in the
// middle of anything, and start it again: what was begun goes on.
package main

import (
	"flag"
	"log"
	"time"

	"github.com/holdfast-agents/holdfast/examples/dojo/features"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/web"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	store := flag.String("store", "file:./data", "where threads are kept")
	model := flag.String("model", "demo", "what answers, such as anthropic/claude-sonnet-5-5; demo needs no key")
	pace := flag.Duration("pace", 30*time.Millisecond, "how long the demo waits before each word")
	flag.Parse()
	if err := serve(server.Config{Addr: *addr, Store: *store}, *model, *pace); err != nil {
		log.Fatal(err)
	}
}

// serve runs the agents until the program is ended. Their threads can be looked at in Studio, at /.
func serve(cfg server.Config, model string, pace time.Duration) error {
	loaded, err := server.Load("", server.Parts{DefaultModel: model, DemoDelay: pace})
	if err != nil {
		return err
	}
	defer loaded.Close()
	const services = 20 // A service takes as long as so many words.
	cfg.Agents = features.All(loaded.Agents[0].Model, services*pace)
	cfg.UI = web.Handler()
	return server.ListenAndServe(cfg)
}
