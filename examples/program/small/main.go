// Command small is a whole agent server: a model, a tool, API keys and the page.
package main

import (
	"context"
	"log"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/model/responses"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/web"
)

type city struct {
	Name string `json:"name" jsonschema:"the city, in English"`
}

func weather(_ context.Context, c city) (string, error) {
	return "It is sunny in " + c.Name + ".", nil
}

func main() {
	model, err := responses.New(responses.Options{Model: "gpt-6-luna"}) // the key is in OPENAI_API_KEY
	if err != nil {
		log.Fatal(err)
	}
	keys, err := apikey.Parse(os.Getenv("HOLDFAST_API_KEYS"), os.ReadFile) // holdfast key makes them
	if err != nil {
		log.Fatal(err)
	}
	pure := holdfast.WithEffect(holdfast.EffectPure)
	tool := holdfast.NewTool("weather", "Tells the weather in a city.", weather, pure)
	agents := []holdfast.Agent{{Name: "helper", Model: model, Tools: []holdfast.Tool{tool}}}
	cfg := server.Config{Addr: os.Getenv("ADDR"), Agents: agents, Authenticate: keys.Authenticate, UI: web.Handler()}
	if err := server.ListenAndServe(cfg); err != nil {
		log.Fatal(err)
	}
}
