package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp"
)

// remote is an agent with the tools of an MCP server, whose options are JSON; its model makes
// the one call that a person's message is, "tool arguments", and then says what it read.
// Without options there is no such agent.
func remote(options string) (agents []holdfast.Agent, end func(), err error) {
	if options == "" {
		return nil, func() {}, nil
	}
	s, err := openServer(options)
	if err != nil {
		return nil, nil, fmt.Errorf("--mcp: %w", err)
	}
	if err := s.Ready(context.Background()); err != nil {
		s.Close()
		return nil, nil, fmt.Errorf("--mcp: %w", err)
	}
	return []holdfast.Agent{{Name: "remote", Model: holdfast.ModelFunc(callOnce), Tools: s.Tools()}}, s.Close, nil
}

// openServer begins to use an MCP server, whose options are JSON.
func openServer(options string) (*mcp.Server, error) {
	var o mcp.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return nil, err
	}
	return mcp.Open(o)
}

func callOnce(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == holdfast.RoleTool {
			if yield(holdfast.Delta{Text: "I read: " + last.PlainText()}, nil) {
				yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
			}
			return
		}
		name, arguments, _ := strings.Cut(last.PlainText(), " ")
		if yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: name, Arguments: arguments}}, nil) {
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	}
}
