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

// load returns the demo agent with the quota, or the agents of a file.
func load(file string) (*server.Loaded, error) {
	parts := server.Parts{DefaultModel: "demo", Middleware: []holdfast.MiddlewareKind{Kind()}}
	loaded, err := server.Load(file, parts)
	if err == nil && file == "" {
		loaded.Agents[0].Middleware = []holdfast.Middleware{Quota(Options{Tools: []string{"lookup"}, PerThread: 2})}
	}
	return loaded, err
}

// serve runs the agents until the program is ended.
func serve(file string) error {
	loaded, err := load(file)
	if err != nil {
		return err
	}
	defer loaded.Close()
	return server.ListenAndServe(server.Config{Agents: loaded.Agents, Limits: loaded.Limits})
}

func main() {
	file := ""
	if len(os.Args) > 1 {
		file = os.Args[1]
	}
	if err := serve(file); err != nil {
		log.Fatal(err)
	}
}
