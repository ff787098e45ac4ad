// Command remote runs an agent with tools of an MCP server.
package main

import (
	"context"
	"log"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/server"
)

func main() {
	if err := serve(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context) error {
	files, err := mcp.Open(mcp.Options{
		Name:    "files",
		Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"},
		Tools:   []string{"read_*", "list_*", "write_file"},
		Effects: map[string]holdfast.Effect{"write_file": holdfast.EffectIdempotent},
	})
	if err != nil {
		return err
	}
	defer files.Close()
	issues, err := mcp.Open(mcp.Options{
		Name:    "issues",
		URL:     "https://tracker.example.com/mcp",
		Headers: map[string]string{"Authorization": "Bearer " + os.Getenv("TRACKER_TOKEN")},
	})
	if err != nil {
		return err
	}
	defer issues.Close()
	for _, s := range []*mcp.Server{files, issues} {
		if err := s.Ready(ctx); err != nil {
			log.Printf("without %s for now: %v", s.Name(), err)
		}
		for _, t := range s.Tools() {
			log.Printf("%s: %s, because %s", t.Spec().Name, t.Spec().Effect, t.(*mcp.Tool).Why())
		}
	}
	model, err := openai.New(openai.Options{Model: "gpt-5-mini"})
	if err != nil {
		return err
	}
	return server.ListenAndServe(server.Config{
		Agents: []holdfast.Agent{{Name: "clerk", Model: model, Toolsets: []holdfast.Toolset{files, issues}}},
	})
}
