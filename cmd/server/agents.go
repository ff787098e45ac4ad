package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/auth"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/server"
)

// configured returns the file's agents and their limits. Without a file there
// is the demo agent, unless the file was asked for by name.
func (o *options) configured(journal io.Writer) ([]holdfast.Agent, map[string]server.Limits, error) {
	path := orDefault(o.configFile, defaultConfig)
	f, err := config.Load(path, known(journal))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.configFile == "":
		return []holdfast.Agent{o.demoAgent(journal)}, nil, nil
	case err != nil:
		return nil, nil, err
	}
	var mistakes []error
	agents := make([]holdfast.Agent, len(f.Agents))
	limits := map[string]server.Limits{}
	for i, a := range f.Agents {
		model, err := o.modelOf(a, journal)
		if err != nil {
			mistakes = append(mistakes, err)
		}
		agents[i] = holdfast.Agent{Name: a.Name, Description: a.Description, Instructions: a.Instructions,
			Model: model, Tools: o.toolsOf(a, journal), Policy: a.Policy}
		limits[a.Name] = server.Limits(a.Limits)
	}
	return agents, limits, errors.Join(mistakes...)
}

func (o *options) demoAgent(journal io.Writer) holdfast.Agent {
	return holdfast.Agent{
		Name:        "demo",
		Description: "A scripted agent that needs no key. Say help.",
		Model:       scripted.New(scripted.Options{Delay: o.demoDelay, Journal: journal}),
		Tools:       tools.Builtin(time.Now, o.demoDelay, journal),
	}
}

// modelOf makes an agent's model. A mistake points to its line in the file.
func (o *options) modelOf(a config.Agent, journal io.Writer) (holdfast.Model, error) {
	name := orDefault(a.Model, o.model)
	if name == "demo" {
		return scripted.New(scripted.Options{Delay: o.demoDelay, Journal: journal}), nil
	}
	return nil, a.Errorf("model", "the model %s cannot be made", name)
}

// toolsOf returns the tools that an agent lists, in its order.
func (o *options) toolsOf(a config.Agent, journal io.Writer) []holdfast.Tool {
	builtin := tools.Builtin(time.Now, o.demoDelay, journal)
	var chosen []holdfast.Tool
	for _, name := range a.Tools {
		if i := slices.IndexFunc(builtin, func(t holdfast.Tool) bool { return t.Spec().Name == name }); i >= 0 {
			chosen = append(chosen, builtin[i])
		}
	}
	return chosen
}

// authenticate is nil without keys: then the server listens on loopback only.
func (o *options) authenticate() (func(*http.Request) (holdfast.Principal, error), error) {
	if o.apiKeys == "" {
		return nil, nil
	}
	keys, err := auth.Parse(o.apiKeys, os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("HOLDFAST_API_KEYS: %w", err)
	}
	return keys.Authenticate, nil
}
