// Command elsewhere makes an AG-UI agent durable that runs in another program, in whatever
// language: it serves the agent at http://localhost:8000/agent, or at the URL in AGENT_URL.
package main

import (
	"cmp"
	"log"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/remote"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// Planner returns an agent that runs elsewhere.
func Planner(url string) (holdfast.Agent, error) {
	far, err := remote.New(remote.Options{
		URL:     url,
		Name:    "planner",
		Effects: map[string]holdfast.Effect{"search": holdfast.EffectPure},
	})
	if err != nil {
		return holdfast.Agent{}, err
	}
	return holdfast.Agent{
		Name:  "planner",
		Model: far,
		State: &sharedstate.Options{Show: "all", MaxBytes: 1 << 20},
	}, nil
}

func main() {
	planner, err := Planner(cmp.Or(os.Getenv("AGENT_URL"), "http://localhost:8000/agent"))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.ListenAndServe(server.Config{Agents: []holdfast.Agent{planner}}))
}
