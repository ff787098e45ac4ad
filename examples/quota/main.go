// Command quota is an agent server with a middleware of its own, which keeps a state in
// the thread: each conversation may look up only a limited number of words.
//
//	go run ./examples/quota
//
// Say "lookup fence" to it more than twice:
//
//	curl -N localhost:8080/runs -H 'Content-Type: application/json' \
//	  -d '{"threadId":"t","runId":"r1","messages":[{"id":"m1","role":"user","content":"lookup fence"}]}'
//
// (with another runId and message id each time), kill the server in between, and see
// that it still knows: GET /threads/t/state shows the count. If its argument is the name
// of a file, it runs the agents in that file, which may have
//
//	middleware:
//	  - example.quota: {tools: [lookup], perThread: 2}
//
// quota.go is the middleware, with its options, version 2 of its state and the migration
// from version 1; quota_test.go tests it with package agenttest, including a crash and
// the migration.
package main

import (
	"log"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// config returns the demo agent with the quota, or the agents of a file.
func config(file string) (server.Config, error) {
	parts := server.Parts{DefaultModel: "demo", Middleware: []holdfast.MiddlewareKind{Kind()}}
	agents, limits, err := server.LoadAgents(file, parts)
	if err == nil && file == "" {
		agents[0].Middleware = []holdfast.Middleware{Quota(Options{Tools: []string{"lookup"}, PerThread: 2})}
	}
	return server.Config{Agents: agents, Limits: limits}, err
}

func main() {
	file := ""
	if len(os.Args) > 1 {
		file = os.Args[1]
	}
	cfg, err := config(file)
	if err == nil {
		err = server.ListenAndServe(cfg)
	}
	if err != nil {
		log.Fatal(err)
	}
}
