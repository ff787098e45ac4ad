// Command formed asks an agent whose answers are Go values.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/server"
)

type trip struct {
	City string   `json:"city" jsonschema:"where to go"`
	Days int      `json:"days"`
	See  []string `json:"see" jsonschema:"what to see there"`
}

func planner(model holdfast.Model) holdfast.Agent {
	return holdfast.Agent{Name: "planner", Model: model, Output: holdfast.OutputOf[trip]("trip")}
}

// plan runs the agent, and returns its answer.
func plan(ctx context.Context, s *server.Server, wish string) (t trip, err error) {
	for event, err := range s.Run(ctx, server.LocalPrincipal(), server.Input{Text: wish}) {
		if err != nil {
			return t, err
		}
		switch event.Type {
		case "RUN_FINISHED":
			end := struct{ Result *trip }{&t}
			return t, json.Unmarshal(event.JSON, &end)
		case "RUN_ERROR":
			var end struct{ Code, Message string }
			return t, errors.Join(json.Unmarshal(event.JSON, &end), fmt.Errorf("%s: %s", end.Code, end.Message))
		}
	}
	return t, errors.New("the run did not end")
}

func main() {
	model, err := openai.New(openai.Options{Model: "gpt-5-mini"}) // the key is in OPENAI_API_KEY
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), model, strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

// run makes one plan, and writes it.
func run(ctx context.Context, model holdfast.Model, wish string) error {
	s, err := server.New(server.Config{Store: "memory:", Agents: []holdfast.Agent{planner(model)}})
	if err != nil {
		return err
	}
	if err := s.StartEngine(ctx); err != nil {
		return err
	}
	t, err := plan(ctx, s, wish)
	fmt.Printf("%d days in %s: %s\n", t.Days, t.City, strings.Join(t.See, ", "))
	return errors.Join(err, s.Shutdown(ctx))
}
